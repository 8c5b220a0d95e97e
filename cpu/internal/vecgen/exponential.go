package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// expConstants are what exp uses.
var expConstants = []string{"bound", "-bound", "shift", "log2e", "ln2", "one", "c2", "c3", "c4", "c5", "c6", "c7", "bias"}

// exp returns e^x of float64, operation by operation what exps of package cpu does.
func (e *emitter) exp(x reg.VecVirtual) reg.VecVirtual {
	v := e.vector
	t, r := v(), v()
	// The second operand of the processor's minimum and maximum is the result where one is NaN.
	e.VMINPD(x, e.inRegister("bound"), x)
	e.VMAXPD(x, e.inRegister("-bound"), x)
	e.VMULPD(e.constant("log2e"), x, t)
	e.VADDPD(e.constant("shift"), t, t)
	e.VSUBPD(e.constant("shift"), t, r)
	e.VMULPD(e.constant("ln2"), r, r)
	e.VSUBPD(r, x, r)
	r2, r4 := v(), v()
	e.VMULPD(r, r, r2)
	low, high := e.line(r, "", "one"), e.line(r, "c5", "c4")
	p23, p67 := e.line(r, "c3", "c2"), e.line(r, "c7", "c6")
	e.VMULPD(r2, p23, p23)
	e.VADDPD(p23, low, low)
	e.VMULPD(r2, p67, p67)
	e.VADDPD(p67, high, high)
	e.VMULPD(r2, r2, r4)
	e.VMULPD(r4, high, high)
	e.VADDPD(high, low, low)
	e.VPSLLQ(operand.U8(52), t, t)
	e.VPADDQ(e.constant("bias"), t, t)
	e.VMULPD(t, low, low)
	return low
}

// line returns slope·r + start. No slope is 1.
func (e *emitter) line(r reg.VecVirtual, slope, start string) reg.VecVirtual {
	v := e.vector()
	if slope == "" {
		e.VADDPD(e.constant(start), r, v)
		return v
	}
	e.VMULPD(e.constant(slope), r, v)
	e.VADDPD(e.constant(start), v, v)
	return v
}

// sigmoids writes the logistic function.
func sigmoids(e *emitter) {
	e.begin("sigmoids", "func(dst, x *float32, n int)", "writes dst = 1/(1+exp(-x)), computed in float64.")
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(append(expConstants, "sign")...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, func(l loop, p *part) {
		v := e.widen(l.of(x, 0), p)
		if e.isAVX512 {
			e.VPXORQ(e.constant("sign"), v, v)
		} else {
			e.VXORPD(e.constant("sign"), v, v)
		}
		v = e.exp(v)
		e.VADDPD(e.constant("one"), v, v)
		e.VDIVPD(v, e.inRegister("one"), v)
		e.narrow(v, l.of(dst, 0), p)
	})
	e.end()
}

// rowSums is how many partial sums a row has.
const rowSums = 16

// expRows writes the exponentials of softmax.
func expRows(e *emitter) {
	e.begin("expRows", "func(dst *float32, sums *float64, x, tops *float32, n, rows int)",
		"writes dst = exp(x - top) for rows of n numbers, top that of the row, and the sum of each row before rounding to sums: number j is added",
		"to partial sum j mod 16, and sum l takes sum l+8, l+4, l+2 and l+1 in turn. Both counts are at least 1.")
	dst, sums, x, tops := e.argument("dst"), e.argument("sums"), e.argument("x"), e.argument("tops")
	n, rows := e.argument("n"), e.argument("rows")
	e.hold(expConstants...)
	e.Label("row")
	top, at, left := e.vector(), e.start(), e.GP64()
	e.broadcastWide(tops, top)
	acc := make(vectors, rowSums/e.half)
	for i := range acc {
		acc[i] = e.zero()
	}
	e.MOVQ(n, left)
	add := func(l loop, g int, p *part) {
		v := e.widen(l.of(x, g*e.half), p)
		e.VSUBPD(top, v, v)
		v = e.exp(v)
		e.narrow(v, l.of(dst, g*e.half), p)
		e.VADDPD(e.onlyWide(v, p), acc[g], acc[g])
	}
	e.groups("row", at, left, len(acc), add)
	e.LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x)
	e.LEAQ(operand.Mem{Base: dst, Index: n, Scale: 4}, dst)
	e.VMOVSD(e.tree(acc), operand.Mem{Base: sums})
	e.ADDQ(operand.U8(8), sums)
	e.ADDQ(operand.U8(4), tops)
	e.DECQ(rows)
	e.JNZ(operand.LabelRef("row"))
	e.end()
}

// broadcastWide fills a vector of float64 with the float32 at p.
func (e *emitter) broadcastWide(p, v reg.Register) {
	if e.isAVX512 {
		e.VCVTPS2PD_BCST(operand.Mem{Base: p}, v)
		return
	}
	x := e.XMM()
	e.VBROADCASTSS(operand.Mem{Base: p}, x)
	e.VCVTPS2PD(x, v)
}

// groups passes over n numbers, count half vectors at a time; add takes one of them, for the g-th accumulator. Of the last ones only
// those half vectors are taken that have numbers.
func (e *emitter) groups(label string, at, n reg.GPVirtual, count int, add func(l loop, g int, p *part)) {
	done := operand.LabelRef(label + "_end")
	step := count * e.half
	e.SUBQ(operand.U32(step), n)
	e.JLT(operand.LabelRef(label + "_last"))
	e.Label(label + "_full")
	for g := range count {
		add(loop{e, at, 0}, g, nil)
	}
	e.ADDQ(operand.U32(step), at)
	e.SUBQ(operand.U32(step), n)
	e.JGE(operand.LabelRef(label + "_full"))
	e.Label(label + "_last")
	e.ADDQ(operand.U32(step), n)
	e.JZ(done)
	all := e.first(n)
	for g := range count {
		if g > 0 {
			e.CMPQ(n, operand.U8(g*e.half))
			e.JLE(done)
		}
		if e.isAVX512 && g > 1 { // a mask register holds two groups
			rest := e.GP64()
			e.LEAQ(operand.Mem{Base: n, Disp: -g * e.half}, rest)
			add(loop{e, at, 0}, g, e.first(rest))
			continue
		}
		add(loop{e, at, 0}, g, e.group(all, g))
	}
	e.Label(label + "_end")
}

// tree adds accumulators of float64 into one number: the upper half to the lower one until one is left.
func (e *emitter) tree(acc vectors) reg.Register {
	for half := len(acc) / 2; half > 0; half /= 2 {
		for i := range half {
			e.VADDPD(acc[i+half], acc[i], acc[i])
		}
	}
	return e.halves(acc[0], func(high, low reg.Register) { e.VADDPD(high, low, low) }).AsX()
}

// halves joins the upper half of a vector to its lower one until 64 bits are left.
func (e *emitter) halves(v reg.VecVirtual, join func(high, low reg.Register)) reg.VecVirtual {
	if e.isAVX512 {
		high := e.YMM()
		e.VEXTRACTF64X4(operand.U8(1), v, high)
		join(high, v.AsY())
	}
	x := e.XMM()
	if e.isAVX512 {
		e.VEXTRACTF64X2(operand.U8(1), v.AsY(), x)
	} else {
		e.VEXTRACTF128(operand.U8(1), v.AsY(), x)
	}
	join(x, v.AsX())
	e.VPERMILPD(operand.U8(1), v.AsX(), x)
	join(x, v.AsX())
	return v
}

// timesRows writes the second half of softmax.
func timesRows(e *emitter) {
	e.begin("timesRows", "func(dst *float32, scales *float64, n, rows int)",
		"multiplies the rows of n numbers of dst by scales, in float64. Both counts are at least 1.")
	dst, scales, n, rows := e.argument("dst"), e.argument("scales"), e.argument("n"), e.argument("rows")
	e.Label("row")
	s, at, left := e.vector(), e.start(), e.GP64()
	e.VBROADCASTSD(operand.Mem{Base: scales}, s)
	e.MOVQ(n, left)
	e.pass("row", at, left, e.half, 2, func(l loop, p *part) {
		v := e.widen(l.of(dst, 0), p)
		e.VMULPD(s, v, v)
		e.narrow(v, l.of(dst, 0), p)
	})
	e.LEAQ(operand.Mem{Base: dst, Index: n, Scale: 4}, dst)
	e.ADDQ(operand.U8(8), scales)
	e.DECQ(rows)
	e.JNZ(operand.LabelRef("row"))
	e.end()
}
