package asmgen

import (
	"strings"
	"unicode/utf8"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Begin starts a function that does not grow the stack and keeps no pointer. Its comment is the name
// and the doc, wrapped at 100 columns. The signature is still to be set.
func Begin(c *build.Context, name, doc string) {
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	const width = 100 - len("// ")
	lines := []string{name}
	for _, word := range strings.Fields(doc) {
		last := &lines[len(lines)-1]
		if utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, word)
		} else {
			*last += " " + word
		}
	}
	c.Doc(lines...)
}

// End returns from a function that has used vectors.
func End(c *build.Context) {
	c.VZEROUPPER()
	c.RET()
}

// Pointer loads an integer or a pointer among the parameters.
func Pointer(c *build.Context, name string) reg.GPVirtual {
	r := c.GP64()
	c.Load(c.Param(name), r)
	return r
}

// Address returns the operand of a parameter. It panics if the function has none of that name.
func Address(c *build.Context, name string) operand.Mem {
	p, err := c.Param(name).Resolve()
	if err != nil {
		panic("asmgen: " + err.Error())
	}
	return p.Addr
}

// Masks writes the table of masks of AVX2: so many words of ones followed by as many of zeros.
func Masks(c *build.Context, name string, words int) {
	c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 2 * words {
		ones := operand.U32(0)
		if i < words {
			ones = 1<<32 - 1
		}
		c.AddDatum(4*i, ones)
	}
}
