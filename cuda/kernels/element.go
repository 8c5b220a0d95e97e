package kernels

import "fmt"

// Element is the type of a matrix's numbers.
type Element int

const (
	F32  Element = iota
	F16          // IEEE's half
	BF16         // bfloat16
)

func (e Element) String() string { return [...]string{"f32", "f16", "bf16"}[e] }

// Size returns the bytes of a number.
func (e Element) Size() int { return [...]int{4, 2, 2}[e] }

// Pack returns how many numbers a thread handles at a time: 16 bytes.
func (e Element) Pack() int { return 16 / e.Size() }

func (e Element) name(kernel string) string { return fmt.Sprintf("%s_%s", kernel, e) }

// defineEach defines kernels for several elements.
func defineEach(unit string, elements []Element, lines ...string) string {
	for _, e := range elements {
		for _, line := range lines {
			define(unit, fmt.Sprintf(line, e))
		}
	}
	return unit
}

var (
	allElements  = []Element{F32, F16, BF16}
	halfElements = []Element{F16, BF16}
)
