package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// transpose writes the transposition of eight rows, eight columns at a time: it interleaves pairs,
// then pairs of pairs, then halves.
func transpose(c *build.Context, set string) {
	asmgen.Begin(c, "transpose8"+set, "writes dst[p·ds+r] = src[min(r,rows-1)·ss+p] for r < 8 and p < 8·blocks: a "+
		"missing row repeats the last one. It prefetches the next eight rows of src, which a processor does not "+
		"expect after short rows.")
	c.SignatureExpr("func(dst *float32, ds int, src *float32, ss, rows, blocks int)")
	load := func(name string) reg.GPVirtual { return asmgen.Pointer(c, name) }
	ss := load("ss")
	src := sources(c, load("src"), ss, load("rows"))
	dst, ds, blocks := load("dst"), load("ds"), load("blocks")
	c.SHLQ(operand.U8(2), ds)
	c.Label("blocks")
	rows := make([]reg.VecVirtual, len(src))
	for i, s := range src {
		rows[i] = c.YMM()
		c.VMOVUPS(operand.Mem{Base: s}, rows[i])
		c.PREFETCHT0(operand.Mem{Base: s, Index: ss, Scale: 8})
		c.ADDQ(operand.U8(32), s)
	}
	for _, column := range transposed(c, rows) {
		c.VMOVUPS(column, operand.Mem{Base: dst})
		c.ADDQ(ds, dst)
	}
	c.DECQ(blocks)
	c.JNZ(operand.LabelRef("blocks"))
	asmgen.End(c)
}

// sources returns pointers to eight rows; the last row is repeated if there are fewer.
func sources(c *build.Context, src, ss, rows reg.GPVirtual) []reg.GPVirtual {
	c.SHLQ(operand.U8(2), ss)
	all := []reg.GPVirtual{src}
	for i := 1; i < 8; i++ {
		next := c.GP64()
		c.MOVQ(all[i-1], next)
		c.ADDQ(ss, next)
		c.CMPQ(rows, operand.U8(i))
		c.CMOVQLE(all[i-1], next)
		all = append(all, next)
	}
	return all
}

// transposed returns the columns of eight rows of eight numbers.
func transposed(c *build.Context, r []reg.VecVirtual) []reg.VecVirtual {
	pairs := func(lo, hi func(...operand.Op), a, b reg.VecVirtual) (l, h reg.VecVirtual) {
		l, h = c.YMM(), c.YMM()
		lo(b, a, l)
		hi(b, a, h)
		return l, h
	}
	var quads [2][4]reg.VecVirtual // [rows 0-3 or 4-7][columns i and i+4]
	for h := range quads {
		a, b := pairs(c.VUNPCKLPS, c.VUNPCKHPS, r[4*h], r[4*h+1])
		d, e := pairs(c.VUNPCKLPS, c.VUNPCKHPS, r[4*h+2], r[4*h+3])
		quads[h][0], quads[h][1] = pairs(c.VUNPCKLPD, c.VUNPCKHPD, a, d)
		quads[h][2], quads[h][3] = pairs(c.VUNPCKLPD, c.VUNPCKHPD, b, e)
	}
	columns := make([]reg.VecVirtual, 8)
	for i := range 4 {
		columns[i], columns[i+4] = c.YMM(), c.YMM()
		c.VPERM2F128(operand.U8(0x20), quads[1][i], quads[0][i], columns[i])
		c.VPERM2F128(operand.U8(0x31), quads[1][i], quads[0][i], columns[i+4])
	}
	return columns
}
