package kernels

import "fmt"

// Element is the type of the numbers of a matrix.
type Element int

const (
	F32  Element = iota
	F16          // IEEE's half
	BF16         // bfloat16
)

func (e Element) String() string { return [...]string{"f32", "f16", "bf16"}[e] }

// Size is how many bytes a number has.
func (e Element) Size() int { return [...]int{4, 2, 2}[e] }

// Pack is how many numbers a thread works on at a time: 16 bytes.
func (e Element) Pack() int { return 16 / e.Size() }

// name is the kernel for an element.
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
	allElements   = []Element{F32, F16, BF16}
	shortElements = []Element{F16, BF16}
)
