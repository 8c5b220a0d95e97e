package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotSums is how many partial sums a scalar product has.
const dotSums = 32

// dotAhead is how many numbers before their turn those of a scalar product are asked of the second cache.
const dotAhead = 256

// dot writes the scalar product. A product of two float32 is exact in float64, so that fusing it with the sum changes nothing.
func dot(e *emitter) {
	e.begin("dot", "func(x, y *float32, n int) float64",
		"returns Σ x·y in float64: product k is added to partial sum k mod 32, and sum l takes sum l+16, l+8, l+4, l+2 and l+1 in turn.")
	x, y := e.argument("x"), e.argument("y")
	acc := make(vectors, dotSums/e.half)
	for i := range acc {
		acc[i] = e.zero()
	}
	e.groups("dot", e.start(), e.argument("n"), len(acc), 1, func(l loop, gs []int, p *part) {
		g := gs[0]
		if at := g * e.half; p == nil && at%16 == 0 { // a cache line begins
			e.PREFETCHT1(l.of(x, at+dotAhead))
			e.PREFETCHT1(l.of(y, at+dotAhead))
		}
		a, b := e.widen(l.of(x, g*e.half), p), e.widen(l.of(y, g*e.half), p)
		e.VFMADD231PD(a, b, acc[g])
	})
	e.Store(e.tree(acc), e.ReturnIndex(0))
	e.end()
}

// rowTops writes the maxima of rows.
func rowTops(e *emitter) {
	e.begin("rowTops", "func(tops, x *float32, n, rows int)",
		"writes the largest number of each of the rows of n numbers, NaN left out; -Inf where there is no other. A zero is positive. Both counts are at least 1.")
	tops, x, n, rows := e.argument("tops"), e.argument("x"), e.argument("n"), e.argument("rows")
	e.hold("float -inf")
	zero := e.zero()
	e.Label("row")
	acc, at, left := e.vector(), e.start(), e.GP64()
	e.VMOVUPS(e.constant("float -inf"), acc)
	e.MOVQ(n, left)
	e.pass("row", at, left, e.lanes, 1, each(func(l loop, p *part) {
		v := e.load(l.of(x, 0), p)
		switch {
		case p == nil:
			e.VMAXPS(acc, v, acc)
		case e.isAVX512:
			e.VMAXPS(acc, v, p.mask, acc)
		default:
			mask := e.YMM()
			e.VMOVUPS(operand.Mem{Base: p.window}, mask)
			e.VBLENDVPS(mask, v, e.inRegister("float -inf"), v)
			e.VMAXPS(acc, v, acc)
		}
	}))
	e.LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x)
	acc = e.halves(acc, func(high, low reg.Register) { e.VMAXPS(high, low, low) })
	last := e.XMM()
	e.VPERMILPS(operand.U8(1), acc.AsX(), last)
	e.VMAXPS(last, acc.AsX(), acc.AsX())
	e.VADDSS(zero.AsX(), acc.AsX(), acc.AsX())
	e.VMOVSS(acc.AsX(), operand.Mem{Base: tops})
	e.ADDQ(operand.U8(4), tops)
	e.DECQ(rows)
	e.JNZ(operand.LabelRef("row"))
	e.end()
}

// wideColumns is how many vectors of float64 a block of columns has.
const wideColumns = 8

// columnSums writes two widths of sums of columns: a block of many columns, and one that may be cut.
func columnSums(e *emitter) {
	e.begin("columnSumsWide", "func(sums *float64, a *float32, rows, stride int)",
		"adds the rows of a matrix whose rows are stride numbers apart to sums, 8 vectors of float64, row by row. There is at least one row.")
	e.columnSums(wideColumns, nil)
	e.begin("columnSumsNarrow", "func(sums *float64, a *float32, rows, stride, columns int)",
		"does so for 1 to 16 columns, and 16 sums. What lies behind the columns is not read, and their sums stay as they are but for a zero's sign.")
	e.columnSums(16/e.half, e.argument("columns"))
}

func (e *emitter) columnSums(count int, columns reg.Register) {
	sums, a, rows, stride := e.argument("sums"), e.argument("a"), e.argument("rows"), e.argument("stride")
	e.SHLQ(operand.U8(2), stride)
	parts := make([]*part, count)
	if columns != nil {
		all := e.first(columns)
		for g := range parts {
			parts[g] = e.group(all, g)
		}
	}
	acc := make(vectors, count)
	at := func(g int) operand.Mem { return operand.Mem{Base: sums, Disp: 8 * e.half * g} }
	for g := range acc {
		acc[g] = e.vector()
		e.VMOVUPD(at(g), acc[g])
	}
	e.Label("row")
	for g := range acc {
		e.VADDPD(e.widen(operand.Mem{Base: a, Disp: 4 * e.half * g}, parts[g]), acc[g], acc[g])
	}
	e.ADDQ(stride, a)
	e.DECQ(rows)
	e.JNZ(operand.LabelRef("row"))
	for g := range acc {
		e.VMOVUPD(acc[g], at(g))
	}
	e.end()
}
