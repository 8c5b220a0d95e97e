package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// expConstants are the constants of exp.
var expConstants = []string{"bound", "-bound", "shift", "log2e", "ln2", "one", "c2", "c3", "c4", "c5", "c6", "c7",
	"bias"}

// exp replaces each x by e^x in float64, operation by operation as exps of package vec does. The
// vectors are interleaved: one after the other they would fill the processor's queues with
// operations that wait.
func (e *emitter) exp(xs vectors) {
	n := len(xs)
	t, r, r2, low, high, p := e.vectors(n), e.vectors(n), e.vectors(n), e.vectors(n), e.vectors(n), e.vectors(n)
	turn := func(op func(i int)) {
		for i := range xs {
			op(i)
		}
	}
	// The second operand of the processor's minimum and maximum is the result if one is NaN.
	bound := e.inRegister("bound")
	turn(func(i int) { e.asm.VMINPD(xs[i], bound, xs[i]) })
	bound = e.inRegister("-bound")
	turn(func(i int) { e.asm.VMAXPD(xs[i], bound, xs[i]) })
	turn(func(i int) { e.asm.VMULPD(e.constant("log2e"), xs[i], t[i]) })
	turn(func(i int) { e.asm.VADDPD(e.constant("shift"), t[i], t[i]) })
	turn(func(i int) { e.asm.VSUBPD(e.constant("shift"), t[i], r[i]) })
	turn(func(i int) { e.asm.VMULPD(e.constant("ln2"), r[i], r[i]) })
	turn(func(i int) { e.asm.VSUBPD(r[i], xs[i], r[i]) })
	turn(func(i int) { e.asm.VMULPD(r[i], r[i], r2[i]) })
	turn(func(i int) { e.asm.VMULPD(e.constant("c7"), r[i], high[i]) })
	turn(func(i int) { e.asm.VMULPD(e.constant("c5"), r[i], p[i]) })
	turn(func(i int) { e.asm.VADDPD(e.constant("c6"), high[i], high[i]) })
	turn(func(i int) { e.asm.VADDPD(e.constant("c4"), p[i], p[i]) })
	turn(func(i int) { e.asm.VMULPD(r2[i], high[i], high[i]) })
	turn(func(i int) { e.asm.VADDPD(high[i], p[i], high[i]) })
	turn(func(i int) { e.asm.VMULPD(e.constant("c3"), r[i], low[i]) })
	turn(func(i int) { e.asm.VADDPD(e.constant("one"), r[i], r[i]) })
	turn(func(i int) { e.asm.VADDPD(e.constant("c2"), low[i], low[i]) })
	turn(func(i int) { e.asm.VMULPD(r2[i], low[i], low[i]) })
	turn(func(i int) { e.asm.VMULPD(r2[i], r2[i], r2[i]) })
	turn(func(i int) { e.asm.VADDPD(low[i], r[i], low[i]) })
	turn(func(i int) { e.asm.VMULPD(r2[i], high[i], high[i]) })
	turn(func(i int) { e.asm.VPSLLQ(operand.U8(52), t[i], t[i]) })
	turn(func(i int) { e.asm.VPADDQ(e.constant("bias"), t[i], t[i]) })
	turn(func(i int) { e.asm.VADDPD(high[i], low[i], low[i]) })
	turn(func(i int) { e.asm.VMULPD(t[i], low[i], xs[i]) })
}

// turns returns how many vectors exp computes at a time: as many as there are registers for.
func (e *emitter) turns() int {
	if e.isAVX512 {
		return 3
	}
	return 2
}

// sigmoids writes the logistic function.
func sigmoids(e *emitter) {
	e.begin("sigmoids", "func(dst, x *float32, n int)", "writes dst = 1/(1+exp(-x)), computed in float64.")
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(append(expConstants, "sign")...)
	e.pass("pass", e.start(), e.argument("n"), e.half, e.turns(), func(ls []loop, p *part) {
		vs := make(vectors, len(ls))
		for i, l := range ls {
			vs[i] = e.widen(l.of(x, 0), p)
		}
		e.expOfNegative(vs)
		one := e.inRegister("one")
		for i, l := range ls {
			e.asm.VADDPD(one, vs[i], vs[i])
			e.asm.VDIVPD(vs[i], one, vs[i])
			e.narrow(vs[i], l.of(dst, 0), p)
		}
	})
	e.end()
}

// expOfNegative replaces each x by e^-x in float64.
func (e *emitter) expOfNegative(xs vectors) {
	for _, x := range xs {
		if e.isAVX512 {
			e.asm.VPXORQ(e.constant("sign"), x, x)
		} else {
			e.asm.VXORPD(e.constant("sign"), x, x)
		}
	}
	e.exp(xs)
}

// swishes writes Swish and what its gradient needs.
func swishes(e *emitter) {
	e.begin("swishes", "func(dst, x, v *float32, n int)",
		"writes dst = x·σ(v·x), σ computed in float64 and rounded to float32, as is each product.")
	dst, x, v := e.argument("dst"), e.argument("x"), e.argument("v")
	e.hold(append(expConstants, "sign")...)
	e.pass("pass", e.start(), e.argument("n"), e.half, e.turns(), func(ls []loop, p *part) {
		vs := e.scaled(ls, x, v, p)
		e.expOfNegative(vs)
		one := e.inRegister("one")
		for i, l := range ls {
			e.asm.VADDPD(one, vs[i], vs[i])
			e.asm.VDIVPD(vs[i], one, vs[i])
			s := e.narrowed(vs[i])
			e.asm.VMULPS(e.loadHalf(l.of(x, 0), p), s, s)
			e.storeHalf(s, l.of(dst, 0), p)
		}
	})
	e.end()

	e.begin("swishGrads", "func(y, dv, dx, x, v, dy *float32, n int)",
		"writes y = x·s, dv = x·(x·w) and dx = dy·(s + t·w) with t = v·x, s = σ(t) and w = σ(t)·σ(-t), s and w "+
			"computed in float64 and rounded to float32, as is each other result.")
	y, dv, dx := e.argument("y"), e.argument("dv"), e.argument("dx")
	x, v, dy := e.argument("x"), e.argument("v"), e.argument("dy")
	e.hold(append(expConstants, "sign")...)
	e.pass("pass", e.start(), e.argument("n"), e.half, e.turns(), func(ls []loop, p *part) {
		vs := e.scaled(ls, x, v, p)
		e.expOfNegative(vs)
		one := e.inRegister("one")
		for i, l := range ls {
			inverse := e.vector()
			e.asm.VADDPD(one, vs[i], inverse)
			e.asm.VDIVPD(inverse, one, inverse)
			e.asm.VMULPD(inverse, vs[i], vs[i])
			e.asm.VMULPD(inverse, vs[i], vs[i])
			s, w, xs := e.narrowed(inverse), e.narrowed(vs[i]), e.loadHalf(l.of(x, 0), p)
			t := e.loadHalf(l.of(v, 0), p)
			e.asm.VMULPS(xs, t, t)
			e.asm.VMULPS(w, t, t)
			e.asm.VADDPS(t, s, t)
			e.asm.VMULPS(e.loadHalf(l.of(dy, 0), p), t, t)
			e.asm.VMULPS(xs, s, s)
			e.asm.VMULPS(xs, w, w)
			e.asm.VMULPS(xs, w, w)
			e.storeHalf(s, l.of(y, 0), p)
			e.storeHalf(w, l.of(dv, 0), p)
			e.storeHalf(t, l.of(dx, 0), p)
		}
	})
	e.end()
}

// scaled returns v·x, rounded to float32, as vectors of float64.
func (e *emitter) scaled(ls []loop, x, v reg.Register, p *part) vectors {
	vs := make(vectors, len(ls))
	for i, l := range ls {
		t := e.loadHalf(l.of(x, 0), p)
		e.asm.VMULPS(e.loadHalf(l.of(v, 0), p), t, t)
		vs[i] = e.vector()
		e.asm.VCVTPS2PD(t, vs[i])
	}
	return vs
}

// rowSums is the number of partial sums of a row.
const rowSums = 16

// expRows writes the exponentials of softmax.
func expRows(e *emitter) {
	e.begin("expRows", "func(dst *float32, sums *float64, x, tops *float32, n, rows int)",
		"writes dst = exp(x - top) for rows of n numbers, top that of the row, and the sum of each row before "+
			"rounding to sums: number j is added to partial sum j mod 16, and sum l takes sum l+8, l+4, l+2 and l+1 "+
			"in turn. Both counts are at least 1.")
	dst, sums, x, tops := e.argument("dst"), e.argument("sums"), e.argument("x"), e.argument("tops")
	n, rows := e.argument("n"), e.argument("rows")
	e.hold(expConstants...)
	e.repeat("row", rows, func() {
		top, at, left := e.vector(), e.start(), e.asm.GP64()
		e.broadcastWide(tops, top)
		acc := e.zeros(rowSums / e.half)
		e.asm.MOVQ(n, left)
		e.groups("row", at, left, len(acc), 2, func(l loop, gs []int, p *part) {
			vs := make(vectors, len(gs))
			for i, g := range gs {
				vs[i] = e.widen(l.of(x, g*e.half), p)
				e.asm.VSUBPD(top, vs[i], vs[i])
			}
			e.exp(vs)
			for i, g := range gs {
				e.narrow(vs[i], l.of(dst, g*e.half), p)
				e.asm.VADDPD(e.onlyWide(vs[i], p), acc[g], acc[g])
			}
		})
		e.asm.LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x)
		e.asm.LEAQ(operand.Mem{Base: dst, Index: n, Scale: 4}, dst)
		e.asm.VMOVSD(e.tree(acc), operand.Mem{Base: sums})
		e.asm.ADDQ(operand.U8(8), sums)
		e.asm.ADDQ(operand.U8(4), tops)
	})
	e.end()
}

// broadcastWide fills a vector of float64 with the float32 at p.
func (e *emitter) broadcastWide(p, v reg.Register) {
	if e.isAVX512 {
		e.asm.VCVTPS2PD_BCST(operand.Mem{Base: p}, v)
		return
	}
	x := e.asm.XMM()
	e.asm.VBROADCASTSS(operand.Mem{Base: p}, x)
	e.asm.VCVTPS2PD(x, v)
}

// groups passes over n numbers, count half vectors at a time; add receives some of them for the
// accumulators gs. Of the last ones it receives only the half vectors that have numbers.
func (e *emitter) groups(label string, at, n reg.GPVirtual, count, together int, add func(l loop, gs []int, p *part)) {
	done := operand.LabelRef(label + "_end")
	step := count * e.half
	e.asm.SUBQ(operand.U32(step), n)
	e.asm.JLT(operand.LabelRef(label + "_last"))
	e.asm.Label(label + "_full")
	for g := 0; g < count; g += together {
		var gs []int
		for i := range together {
			gs = append(gs, g+i)
		}
		add(loop{e, at, 0}, gs, nil)
	}
	e.asm.ADDQ(operand.U32(step), at)
	e.asm.SUBQ(operand.U32(step), n)
	e.asm.JGE(operand.LabelRef(label + "_full"))
	e.asm.Label(label + "_last")
	e.asm.ADDQ(operand.U32(step), n)
	e.asm.JZ(done)
	all := e.first(n)
	for g := range count {
		if g > 0 {
			e.asm.CMPQ(n, operand.U8(g*e.half))
			e.asm.JLE(done)
		}
		if e.isAVX512 && g > 1 { // a mask register holds two groups
			rest := e.asm.GP64()
			e.asm.LEAQ(operand.Mem{Base: n, Disp: -g * e.half}, rest)
			add(loop{e, at, 0}, []int{g}, e.first(rest))
			continue
		}
		add(loop{e, at, 0}, []int{g}, e.group(all, g))
	}
	e.asm.Label(label + "_end")
}

// tree adds accumulators of float64 to one number: the upper half to the lower one until one is
// left.
func (e *emitter) tree(acc vectors) reg.Register {
	for half := len(acc) / 2; half > 0; half /= 2 {
		for i := range half {
			e.asm.VADDPD(acc[i+half], acc[i], acc[i])
		}
	}
	return e.halves(acc[0], func(high, low reg.Register) { e.asm.VADDPD(high, low, low) }).AsX()
}

// halves joins the upper half of a vector to its lower one until 64 bits are left.
func (e *emitter) halves(v reg.VecVirtual, join func(high, low reg.Register)) reg.VecVirtual {
	if e.isAVX512 {
		high := e.asm.YMM()
		e.asm.VEXTRACTF64X4(operand.U8(1), v, high)
		join(high, v.AsY())
	}
	x := e.asm.XMM()
	if e.isAVX512 {
		e.asm.VEXTRACTF64X2(operand.U8(1), v.AsY(), x)
	} else {
		e.asm.VEXTRACTF128(operand.U8(1), v.AsY(), x)
	}
	join(x, v.AsX())
	e.asm.VPERMILPD(operand.U8(1), v.AsX(), x)
	join(x, v.AsX())
	return v
}

// slopeRows writes the gradient of softmax.
func slopeRows(e *emitter) {
	e.begin("slopeRows", "func(dst, p, d *float32, means *float64, n, rows, stride int)",
		"writes p·(d - mean) for rows of n numbers, mean that of the row, computed in float64. Rows of dst and p lie "+
			"stride numbers apart, those of d n numbers. Both counts are at least 1.")
	dst, p, d, means := e.argument("dst"), e.argument("p"), e.argument("d"), e.argument("means")
	n, rows, stride := e.argument("n"), e.argument("rows"), e.argument("stride")
	e.repeat("row", rows, func() {
		mean, at, left := e.vector(), e.start(), e.asm.GP64()
		e.asm.VBROADCASTSD(operand.Mem{Base: means}, mean)
		e.asm.MOVQ(n, left)
		e.pass("row", at, left, e.half, 2, each(func(l loop, part *part) {
			v := e.widen(l.of(d, 0), part)
			e.asm.VSUBPD(mean, v, v)
			e.asm.VMULPD(e.widen(l.of(p, 0), part), v, v)
			e.narrow(v, l.of(dst, 0), part)
		}))
		for _, base := range []reg.GPVirtual{dst, p} {
			e.asm.LEAQ(operand.Mem{Base: base, Index: stride, Scale: 4}, base)
		}
		e.asm.LEAQ(operand.Mem{Base: d, Index: n, Scale: 4}, d)
		e.asm.ADDQ(operand.U8(8), means)
	})
	e.end()
}

// timesRows writes the second half of softmax.
func timesRows(e *emitter) {
	e.begin("timesRows", "func(dst, src *float32, scales *float64, n, rows int)",
		"writes the rows of n numbers of src times scales, multiplied in float64, to dst. Both counts are at least 1.")
	dst, src, scales := e.argument("dst"), e.argument("src"), e.argument("scales")
	n, rows := e.argument("n"), e.argument("rows")
	e.repeat("row", rows, func() {
		s, at, left := e.vector(), e.start(), e.asm.GP64()
		e.asm.VBROADCASTSD(operand.Mem{Base: scales}, s)
		e.asm.MOVQ(n, left)
		e.pass("row", at, left, e.half, 2, each(func(l loop, p *part) {
			v := e.widen(l.of(src, 0), p)
			e.asm.VMULPD(s, v, v)
			e.narrow(v, l.of(dst, 0), p)
		}))
		e.asm.LEAQ(operand.Mem{Base: src, Index: n, Scale: 4}, src)
		e.asm.LEAQ(operand.Mem{Base: dst, Index: n, Scale: 4}, dst)
		e.asm.ADDQ(operand.U8(8), scales)
	})
	e.end()
}
