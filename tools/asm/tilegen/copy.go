package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// copyPieces writes the copy of pieces of rows to their panels or strips.
func copyPieces(c *build.Context, set string) {
	asmgen.Begin(c, "copyPieces"+set, "copies dst[p·dr+i·ds+l] = src[p·sr+i·ss+l] for p < rows, i < pieces and "+
		"l < 8·eights. All counts are at least 1. It prefetches src so many numbers ahead, since a processor does "+
		"not prefetch beyond the page it reads.")
	c.SignatureExpr("func(dst *float32, dr, ds int, src *float32, sr, ss, rows, pieces, eights, ahead int)")
	load := func(name string) reg.GPVirtual { return asmgen.Pointer(c, name) }
	inBytes := func(name string) reg.GPVirtual {
		r := load(name)
		c.SHLQ(operand.U8(2), r)
		return r
	}
	dst, src, rows, eights := load("dst"), load("src"), load("rows"), load("eights")
	dr, ds, sr, ss, next := inBytes("dr"), inBytes("ds"), inBytes("sr"), inBytes("ss"), inBytes("ahead")
	for _, n := range []int{1, 2, 0} { // eights of a piece; 0 is any number
		label := fmt.Sprint("eights", n)
		if n > 0 {
			c.CMPQ(eights, operand.U8(n))
			c.JNE(operand.LabelRef(label + "_not"))
		} else {
			c.SHLQ(operand.U8(2), eights) // in units of eight bytes, as the addresses below count
		}
		c.Label(label + "_row")
		to, from, left := c.GP64(), c.GP64(), load("pieces")
		c.MOVQ(dst, to)
		c.MOVQ(src, from)
		c.Label(label + "_piece")
		if n > 0 {
			c.PREFETCHT0(operand.Mem{Base: from, Index: next, Scale: 1})
			for i := range n {
				v := c.YMM()
				c.VMOVUPS(operand.Mem{Base: from, Disp: 32 * i}, v)
				c.VMOVUPS(v, operand.Mem{Base: to, Disp: 32 * i})
			}
		} else {
			copyEights(c, to, from, next, eights)
		}
		c.ADDQ(ds, to)
		c.ADDQ(ss, from)
		c.DECQ(left)
		c.JNZ(operand.LabelRef(label + "_piece"))
		c.ADDQ(dr, dst)
		c.ADDQ(sr, src)
		c.DECQ(rows)
		c.JNZ(operand.LabelRef(label + "_row"))
		if n > 0 {
			c.VZEROUPPER()
			c.RET()
			c.Label(label + "_not")
		}
	}
	asmgen.End(c)
}

// copyEights copies a piece of any length.
func copyEights(c *build.Context, to, from, next, eights reg.GPVirtual) {
	at, ahead, v := c.GP64(), c.GP64(), c.YMM()
	c.XORQ(at, at)
	c.LEAQ(operand.Mem{Base: from, Index: next, Scale: 1}, ahead)
	c.Label("eights")
	c.PREFETCHT0(operand.Mem{Base: ahead, Index: at, Scale: 8})
	c.VMOVUPS(operand.Mem{Base: from, Index: at, Scale: 8}, v)
	c.VMOVUPS(v, operand.Mem{Base: to, Index: at, Scale: 8})
	c.ADDQ(operand.U8(4), at)
	c.CMPQ(at, eights)
	c.JLT(operand.LabelRef("eights"))
}
