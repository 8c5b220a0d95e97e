package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotSums is the number of partial sums of a scalar product.
const dotSums = 32

// dotPrefetch is how many numbers ahead a scalar product prefetches into the second-level cache.
const dotPrefetch = 256

// dot writes the scalar product, and that of a vector with itself, which is converted only once. A
// product of two float32 is exact in float64, so fusing it with the sum changes nothing.
func dot(e *emitter) {
	const order = "in float64: product k is added to partial sum k mod 32, and sum l takes sum l+16, l+8, l+4, l+2 " +
		"and l+1 in turn."
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

// dotOf adds the products of the half vectors that factors returns. It prefetches x, and y if there
// is one.
func (e *emitter) dotOf(x, y reg.Register, factors func(l loop, at int, p *part) (a, b reg.VecVirtual)) {
	acc := e.zeros(dotSums / e.half)
	e.groups("dot", e.start(), e.argument("n"), len(acc), 1, func(l loop, gs []int, p *part) {
		g := gs[0]
		if at := g * e.half; p == nil && at%16 == 0 { // a cache line begins
			e.asm.PREFETCHT1(l.of(x, at+dotPrefetch))
			if y != nil {
				e.asm.PREFETCHT1(l.of(y, at+dotPrefetch))
			}
		}
		a, b := factors(l, g*e.half, p)
		e.asm.VFMADD231PD(a, b, acc[g])
	})
	e.asm.Store(e.tree(acc), e.asm.ReturnIndex(0))
	e.end()
}

// rowMaxima writes the maxima of rows.
func rowMaxima(e *emitter) {
	e.begin("rowMaxima", "func(tops, x *float32, n, rows int)",
		"writes the largest number of each row of n numbers. NaN are ignored; without another number it is -Inf. A "+
			"zero is positive. Both counts are at least 1.")
	tops, x, n, rows := e.argument("tops"), e.argument("x"), e.argument("n"), e.argument("rows")
	e.hold("float -inf")
	zero := e.zero()
	e.repeat("row", rows, func() {
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
	})
	e.end()
}

// wideColumns is the number of vectors of float64 of a block of columns.
const wideColumns = 8

// columnSums writes two widths of sums of columns: a block of many columns, and one that may be
// partial.
func columnSums(e *emitter) {
	e.begin("columnSumsWide", "func(sums *float64, a *float32, rows, stride int)",
		"adds the rows of a matrix whose rows are stride numbers apart to sums, 8 vectors of float64, row by row. "+
			"There is at least one row.")
	e.columnSums(wideColumns, nil)
	e.begin("columnSumsNarrow", "func(sums *float64, a *float32, rows, stride, columns int)",
		"does so for 1 to 16 columns, and 16 sums. Nothing behind the columns is read, and their sums do not change, "+
			"except for the sign of a zero.")
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
	e.repeat("row", rows, func() {
		for g := range acc {
			e.asm.VADDPD(e.widen(operand.Mem{Base: a, Disp: 4 * e.half * g}, parts[g]), acc[g], acc[g])
		}
		e.asm.ADDQ(stride, a)
	})
	for g := range acc {
		e.asm.VMOVUPD(acc[g], at(g))
	}
	e.end()
}
