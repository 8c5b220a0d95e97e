package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotSums is how many partial sums a scalar product has.
const dotSums = 32

// dotAhead is how many numbers before their turn those of a scalar product are asked of the second
// cache.
const dotAhead = 256

// dot writes the scalar product, and that of a vector with itself, which is converted once. A
// product of two float32 is exact in float64, so that fusing it with the sum changes nothing.
func dot(e *emitter) {
	const order = "in float64: product k is added to partial sum k mod 32, and sum l takes sum l+16, l+8, l+4, l+2 and l+1 in turn."
	e.begin("dot", "func(x, y *float32, n int) float64", "returns Σ x·y "+order)
	x, y := e.argument("x"), e.argument("y")
	e.dotOf(x, y, func(l loop, at int, p *part) (a, b reg.VecVirtual) {
		return e.widen(l.of(x, at), p), e.widen(l.of(y, at), p)
	})
	e.begin("squares", "func(x *float32, n int) float64", "returns Σ x·x "+order)
	x = e.argument("x")
	e.dotOf(x, nil, func(l loop, at int, p *part) (a, b reg.VecVirtual) {
		v := e.widen(l.of(x, at), p)
		return v, v
	})
}

// dotOf adds up the products of the half vectors that factors returns. It asks the cache for x, and
// for y where there is one.
func (e *emitter) dotOf(x, y reg.Register, factors func(l loop, at int, p *part) (a, b reg.VecVirtual)) {
	acc := make(vectors, dotSums/e.half)
	for i := range acc {
		acc[i] = e.zero()
	}
	e.groups("dot", e.start(), e.argument("n"), len(acc), 1, func(l loop, gs []int, p *part) {
		g := gs[0]
		if at := g * e.half; p == nil && at%16 == 0 { // a cache line begins
			e.asm.PREFETCHT1(l.of(x, at+dotAhead))
			if y != nil {
				e.asm.PREFETCHT1(l.of(y, at+dotAhead))
			}
		}
		a, b := factors(l, g*e.half, p)
		e.asm.VFMADD231PD(a, b, acc[g])
	})
	e.asm.Store(e.tree(acc), e.asm.ReturnIndex(0))
	e.end()
}

// rowTops writes the maxima of rows.
func rowTops(e *emitter) {
	e.begin("rowTops", "func(tops, x *float32, n, rows int)",
		"writes the largest number of each of the rows of n numbers, NaN left out; -Inf where there is no other. A zero is positive. Both counts are at least 1.")
	tops, x, n, rows := e.argument("tops"), e.argument("x"), e.argument("n"), e.argument("rows")
	e.hold("float -inf")
	zero := e.zero()
	e.asm.Label("row")
	acc, at, left := e.vector(), e.start(), e.asm.GP64()
	e.asm.VMOVUPS(e.constant("float -inf"), acc)
	e.asm.MOVQ(n, left)
	e.pass("row", at, left, e.lanes, 1, each(func(l loop, p *part) {
		v := e.load(l.of(x, 0), p)
		switch {
		case p == nil:
			e.asm.VMAXPS(acc, v, acc)
		case e.isAVX512:
			e.asm.VMAXPS(acc, v, p.mask, acc)
		default:
			mask := e.asm.YMM()
			e.asm.VMOVUPS(operand.Mem{Base: p.window}, mask)
			e.asm.VBLENDVPS(mask, v, e.inRegister("float -inf"), v)
			e.asm.VMAXPS(acc, v, acc)
		}
	}))
	e.asm.LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x)
	acc = e.halves(acc, func(high, low reg.Register) { e.asm.VMAXPS(high, low, low) })
	last := e.asm.XMM()
	e.asm.VPERMILPS(operand.U8(1), acc.AsX(), last)
	e.asm.VMAXPS(last, acc.AsX(), acc.AsX())
	e.asm.VADDSS(zero.AsX(), acc.AsX(), acc.AsX())
	e.asm.VMOVSS(acc.AsX(), operand.Mem{Base: tops})
	e.asm.ADDQ(operand.U8(4), tops)
	e.asm.DECQ(rows)
	e.asm.JNZ(operand.LabelRef("row"))
	e.end()
}

// wideColumns is how many vectors of float64 a block of columns has.
const wideColumns = 8

// columnSums writes two widths of sums of columns: a block of many columns, and one that may be
// cut.
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
	e.asm.SHLQ(operand.U8(2), stride)
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
		e.asm.VMOVUPD(at(g), acc[g])
	}
	e.asm.Label("row")
	for g := range acc {
		e.asm.VADDPD(e.widen(operand.Mem{Base: a, Disp: 4 * e.half * g}, parts[g]), acc[g], acc[g])
	}
	e.asm.ADDQ(stride, a)
	e.asm.DECQ(rows)
	e.asm.JNZ(operand.LabelRef("row"))
	for g := range acc {
		e.asm.VMOVUPD(acc[g], at(g))
	}
	e.end()
}
