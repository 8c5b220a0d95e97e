package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// copyPieces writes the copy of pieces of a row to their panels or strips.
func copyPieces(c *build.Context) {
	asmgen.Begin(c, "copyPiecesAVX2", "copies dst[i·ds+l] = src[i·ss+l] for i < pieces and l < 8·eights. Both counts "+
		"are at least 1. It prefetches src so many numbers ahead, since a processor does not prefetch beyond the "+
		"page it reads.")
	c.SignatureExpr("func(dst *float32, ds int, src *float32, ss, pieces, eights, ahead int)")
	load := func(name string) reg.GPVirtual { return asmgen.Pointer(c, name) }
	dst, src, ds, ss, pieces, eights := load("dst"), load("src"), load("ds"), load("ss"), load("pieces"), load("eights")
	next := load("ahead")
	c.SHLQ(operand.U8(2), next)
	c.ADDQ(src, next)
	c.SHLQ(operand.U8(2), ds)
	c.SHLQ(operand.U8(2), ss)
	c.SHLQ(operand.U8(2), eights) // in units of eight bytes, as the addresses below count
	c.Label("pieces")
	at, v := c.GP64(), c.YMM()
	c.XORQ(at, at)
	c.Label("eights")
	c.PREFETCHT0(operand.Mem{Base: next, Index: at, Scale: 8})
	c.VMOVUPS(operand.Mem{Base: src, Index: at, Scale: 8}, v)
	c.VMOVUPS(v, operand.Mem{Base: dst, Index: at, Scale: 8})
	c.ADDQ(operand.U8(4), at)
	c.CMPQ(at, eights)
	c.JLT(operand.LabelRef("eights"))
	c.ADDQ(ds, dst)
	c.ADDQ(ss, src)
	c.ADDQ(ss, next)
	c.DECQ(pieces)
	c.JNZ(operand.LabelRef("pieces"))
	asmgen.End(c)
}
