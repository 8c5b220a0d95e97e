package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// block is how many columns decodeColumns decodes at a time: the bytes of an XMM register.
const block = 16

// decoder decodes bytes to numbers.
type decoder struct {
	*emitter
	scale, shift reg.VecVirtual
}

func (e *emitter) decoder() decoder { return decoder{e, e.broadcast("scale"), e.broadcast("shift")} }

// numbers decodes as many bytes as a vector has lanes, in memory or at the low end of a register.
// Elements outside of p are not read.
func (d decoder) numbers(bytes operand.Op, p *part) reg.VecVirtual {
	v := d.vector()
	if p == nil {
		d.asm.VPMOVZXBD(bytes, v)
	} else {
		d.asm.VPMOVZXBD_Z(bytes, p.mask, v)
	}
	d.asm.VCVTDQ2PS(v, v)
	d.asm.VMULPS(d.scale, v, v)
	d.asm.VADDPS(d.shift, v, v)
	return v
}

// decodeRows writes the conversion of rows of bytes to rows of numbers.
func decodeRows(e *emitter) {
	doc := "writes the numbers of rows×cols bytes: dst[r·ds+c] = scale·src[at[r]+c] + shift, the product rounded " +
		"first. Both counts are at least 1."
	if !e.isAVX512 {
		doc += " cols is a multiple of 8."
	}
	e.begin("decodeRows", "func(dst *float32, ds int, src *uint8, at *int, rows, cols int, scale, shift float32)", doc)
	dst, ds, src, starts := e.argument("dst"), e.argument("ds"), e.argument("src"), e.argument("at")
	rows, cols := e.argument("rows"), e.argument("cols")
	d := e.decoder()
	e.asm.SHLQ(operand.U8(2), ds)
	e.repeat("rows", rows, func() {
		at, n, row := e.start(), e.asm.GP64(), e.asm.GP64()
		e.asm.MOVQ(cols, n)
		e.asm.MOVQ(operand.Mem{Base: starts}, row)
		e.asm.ADDQ(src, row)
		e.pass("row", at, n, e.lanes, 2, func(ls []loop, p *part) {
			if p != nil && !e.isAVX512 {
				return // cols is a multiple of the lanes
			}
			for _, l := range ls {
				v := d.numbers(operand.Mem{Base: row, Index: l.at, Scale: 1, Disp: l.disp}, p)
				e.store(v, l.of(dst, 0), p)
			}
		})
		e.asm.ADDQ(ds, dst)
		e.asm.ADDQ(operand.U8(8), starts)
	})
	e.end()
}

// panelPrefetch is how many rows ahead decodePanels prefetches.
const panelPrefetch = 8

// decodePanels writes the conversion of rows of bytes to panels: pieces of each row that are two
// vectors wide.
func decodePanels(e *emitter) {
	e.begin("decodePanels", "func(dst *float32, ds int, src *uint8, at *int, rows, panels int, scale, shift float32)",
		"writes the numbers of bytes to panels of two vectors: dst[i·ds+r·wide+c] = scale·src[at[r]+i·wide+c] + "+
			"shift for c < wide, which is the length of two vectors. Both counts are at least 1. It prefetches rows "+
			"up to at[rows+7].")
	dst, ds, src, starts := e.argument("dst"), e.argument("ds"), e.argument("src"), e.argument("at")
	rows, panels := e.argument("rows"), e.argument("panels")
	d := e.decoder()
	e.asm.SHLQ(operand.U8(2), ds)
	e.repeat("rows", rows, func() {
		row, ahead, out, left := e.asm.GP64(), e.asm.GP64(), e.asm.GP64(), e.asm.GP64()
		e.asm.MOVQ(operand.Mem{Base: starts}, row)
		e.asm.MOVQ(operand.Mem{Base: starts, Disp: 8 * panelPrefetch}, ahead)
		e.asm.ADDQ(src, row)
		e.asm.ADDQ(src, ahead)
		e.asm.MOVQ(dst, out)
		e.asm.MOVQ(panels, left)
		e.repeat("panels", left, func() {
			e.asm.PREFETCHT0(operand.Mem{Base: ahead})
			for v := range 2 {
				e.store(d.numbers(operand.Mem{Base: row, Disp: v * e.lanes}, nil),
					operand.Mem{Base: out, Disp: 4 * v * e.lanes}, nil)
			}
			e.asm.ADDQ(operand.U8(2*e.lanes), row)
			e.asm.ADDQ(operand.U8(2*e.lanes), ahead)
			e.asm.ADDQ(ds, out)
		})
		e.asm.ADDQ(operand.U32(8*e.lanes), dst)
		e.asm.ADDQ(operand.U8(8), starts)
	})
	e.end()
}

// prefetchRows writes the prefetch of rows of bytes that lie anywhere.
func prefetchRows(e *emitter) {
	if e.isAVX512 {
		return // one for both sets
	}
	e.begin("prefetchRows", "func(src *uint8, at *int, rows, n int)",
		"prefetches n bytes of each of some rows, which begin at src + at[r], into the second-level cache. Both "+
			"counts are at least 1.")
	src, starts, rows, n := e.argument("src"), e.argument("at"), e.argument("rows"), e.argument("n")
	e.repeat("rows", rows, func() {
		row, end := e.asm.GP64(), e.asm.GP64()
		e.asm.MOVQ(operand.Mem{Base: starts}, row)
		e.asm.ADDQ(src, row)
		e.asm.MOVQ(row, end)
		e.asm.ADDQ(n, end)
		e.asm.ANDQ(operand.I8(-64), row) // the line of the first byte
		e.asm.Label("lines")
		e.asm.PREFETCHT1(operand.Mem{Base: row})
		e.asm.ADDQ(operand.U8(64), row)
		e.asm.CMPQ(row, end)
		e.asm.JCS(operand.LabelRef("lines"))
		e.asm.ADDQ(operand.U8(8), starts)
	})
	e.end()
}

// decodeColumns writes the same for a panel whose rows are the columns of bytes. It transposes the
// bytes first: interleaving register i with register i+lanes/2, byte by byte, moves one bit of the
// index of a byte's register into the index of its position in the register, and the highest bit of
// the position out. Rows of the second vector of the panel are in the upper halves of the
// registers.
func decodeColumns(e *emitter) {
	e.begin("decodeColumns", "func(dst *float32, ds int, src *uint8, at *int, blocks int, scale, shift float32)",
		"writes the numbers of bytes by columns: dst[p·ds+r] = scale·src[at[r]+p] + shift for p < 16·blocks and r "+
			"below the length of two vectors. It prefetches the same columns of as many rows that follow in at.")
	dst, ds, src, starts := e.argument("dst"), e.argument("ds"), e.argument("src"), e.argument("at")
	blocks := e.argument("blocks")
	d := e.decoder()
	e.asm.SHLQ(operand.U8(2), ds)
	const turns = 64 / block // blocks in a line: each row is prefetched once in it
	turn, place := e.start(), e.asm.GP64()
	e.repeat("blocks", blocks, func() {
		for i := range 2 * e.lanes / turns {
			e.asm.MOVQ(operand.Mem{Base: starts, Index: turn, Scale: 1, Disp: 8 * (2*e.lanes + i)}, place)
			e.asm.PREFETCHT0(operand.Mem{Base: src, Index: place, Scale: 1})
		}
		e.asm.ADDQ(operand.U8(16*e.lanes/turns), turn)
		e.asm.ANDQ(operand.U32(16*e.lanes-1), turn)
		rows := make([]reg.VecVirtual, e.lanes)
		for i := range rows {
			rows[i] = e.asm.YMM()
			e.asm.MOVQ(operand.Mem{Base: starts, Disp: 8 * i}, place)
			e.loadTwice(operand.Mem{Base: src, Index: place, Scale: 1}, rows[i])
			e.asm.MOVQ(operand.Mem{Base: starts, Disp: 8 * (e.lanes + i)}, place)
			e.insertHigh(operand.Mem{Base: src, Index: place, Scale: 1}, rows[i])
		}
		for range log2(e.lanes) {
			rows = e.interleave(rows)
		}
		for _, columns := range rows { // one column, or two, each with eight bytes of both halves
			low, high := columns.AsX(), e.high(columns)
			for c := range block / e.lanes {
				if c > 0 {
					e.asm.VPSRLDQ(operand.U8(e.lanes), low, low)
					e.asm.VPSRLDQ(operand.U8(e.lanes), high, high)
				}
				e.store(d.numbers(low, nil), operand.Mem{Base: dst}, nil)
				e.store(d.numbers(high, nil), operand.Mem{Base: dst, Disp: 4 * e.lanes}, nil)
				e.asm.ADDQ(ds, dst)
			}
		}
		e.asm.ADDQ(operand.U8(block), src)
	})
	e.end()
}

// loadTwice loads 16 bytes into both halves of a YMM register.
func (e *emitter) loadTwice(m operand.Mem, v reg.VecVirtual) {
	if e.isAVX512 { // even if the register is one that AVX2 does not have
		e.asm.VBROADCASTI32X4(m, v)
		return
	}
	e.asm.VBROADCASTI128(m, v)
}

// insertHigh loads the upper half of a YMM register.
func (e *emitter) insertHigh(m operand.Mem, v reg.VecVirtual) {
	if e.isAVX512 {
		e.asm.VINSERTI32X4(operand.U8(1), m, v, v)
		return
	}
	e.asm.VINSERTI128(operand.U8(1), m, v, v)
}

// high returns the upper half of a YMM register.
func (e *emitter) high(v reg.VecVirtual) reg.VecVirtual {
	x := e.asm.XMM()
	if e.isAVX512 {
		e.asm.VEXTRACTI32X4(operand.U8(1), v, x)
	} else {
		e.asm.VEXTRACTI128(operand.U8(1), v, x)
	}
	return x
}

// interleave interleaves the bytes of register i and register i + half of them.
func (e *emitter) interleave(r []reg.VecVirtual) []reg.VecVirtual {
	var out []reg.VecVirtual
	for i, low := range r[:len(r)/2] {
		high, first := r[len(r)/2+i], e.asm.YMM()
		e.asm.VPUNPCKLBW(high, low, first)
		e.asm.VPUNPCKHBW(high, low, low)
		out = append(out, first, low)
	}
	return out
}

func log2(n int) (l int) {
	for ; n > 1; n /= 2 {
		l++
	}
	return l
}
