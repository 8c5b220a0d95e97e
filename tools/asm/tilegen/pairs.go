package main

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"fspda/tools/asm/asmgen"
)

// Instructions on pairs of bfloat16 numbers, which neither avo nor Go's assembler has, are written
// as others with the same operands, and rewritten.
var standIn = regexp.MustCompile(`VPMADD52([LH])UQ +Z(\d+), Z(\d+), Z(\d+)`)

var standsFor = map[string]struct {
	name       string
	prefix, op byte // Two bytes of an instruction EVEX.512.0F38.W0.
}{"L": {"VDPBF16PS", 2, 0x52}, "H": {"VCVTNE2PS2BF16", 3, 0x72}}

// pairInstructions rewrites the instructions of a file.
func pairInstructions(text []byte) []byte {
	text = standIn.ReplaceAllFunc(text, func(line []byte) []byte {
		m := standIn.FindSubmatch(line)
		i := standsFor[string(m[1])]
		var r [3]int // the second factor, the first, the result
		for k, digits := range m[2:] {
			r[k], _ = strconv.Atoi(string(digits)) // it matches digits only
		}
		code := evex(i.prefix, i.op, r[2], r[1], r[0])
		return fmt.Appendf(nil, "LONG $0x%02x%02x%02x%02x; WORD $0x%02x%02x // %s Z%d, Z%d, Z%d", code[3], code[2],
			code[1], code[0], code[5], code[4], i.name, r[0], r[1], r[2])
	})
	return regexp.MustCompile(`AVX512IFMA`).ReplaceAll(text, []byte("AVX512_BF16"))
}

// evex returns an instruction on registers of 512 bits: EVEX.512.prefix.0F38.W0 op /r.
func evex(prefix, op byte, result, first, second int) [6]byte {
	not := func(r, bit int) byte { return byte(^r>>bit) & 1 }
	return [6]byte{
		0x62,
		not(result, 3)<<7 | not(second, 4)<<6 | not(second, 3)<<5 | not(result, 4)<<4 | 2,
		byte(^first&15)<<3 | 1<<2 | prefix,
		2<<5 | not(first, 4)<<3,
		op,
		3<<6 | byte(result&7)<<3 | byte(second&7),
	}
}

// betweenOrder is the name of the order in which VPERMW interleaves two halves of a register.
const betweenOrder = "between"

// narrow writes the function that makes pairs of neighbours, and the one that makes pairs of two
// rows.
func narrow(c *build.Context) {
	order := c.StaticGlobal(betweenOrder)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 32 {
		c.AddDatum(2*i, operand.U16(i/2+i%2*16))
	}
	for _, f := range []struct{ name, doc string }{
		{"narrow", "writes dst[i] = the pair of a[2i] and a[2i+1] for i < 16·blocks, rounded to bfloat16. b is " +
			"not used."},
		{"between", "writes dst[i] = the pair of a[i] and b[i] for i < 16·blocks, rounded to bfloat16."},
	} {
		asmgen.Begin(c, f.name+"AVX512BF16", f.doc)
		c.SignatureExpr("func(dst, a, b *float32, blocks int)")
		dst, n := asmgen.Pointer(c, "dst"), asmgen.Pointer(c, "blocks")
		a, b := asmgen.Pointer(c, "a"), asmgen.Pointer(c, "b")
		permute := c.ZMM()
		if f.name == "between" {
			c.VMOVDQU16(order, permute)
		}
		c.Label("blocks")
		low, high, pairs := c.ZMM(), c.ZMM(), c.ZMM()
		c.VMOVUPS(operand.Mem{Base: a}, low)
		if f.name == "between" {
			c.VMOVUPS(operand.Mem{Base: b}, high)
			c.ADDQ(operand.U8(64), a)
			c.ADDQ(operand.U8(64), b)
		} else {
			c.VMOVUPS(operand.Mem{Base: a, Disp: 64}, high)
			c.ADDQ(operand.U32(128), a)
		}
		c.VPXORD(pairs, pairs, pairs) // the stand-in reads it
		c.VPMADD52HUQ(low, high, pairs)
		if f.name == "between" {
			c.VPERMW(pairs, permute, pairs)
		}
		c.VMOVUPS(pairs, operand.Mem{Base: dst})
		c.ADDQ(operand.U8(64), dst)
		c.DECQ(n)
		c.JNZ(operand.LabelRef("blocks"))
		asmgen.End(c)
	}
}
