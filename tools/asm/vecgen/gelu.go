package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// powerConstants are those of powers and reciprocals that are held in registers.
var powerConstants = []string{"power bound", "-power bound", "shift", "power 0", "power 2", "power 4", "power 6", "one"}

// powers replaces each x by 2^x in float64, operation by operation as powers of package vec does.
func (e *emitter) powers(xs vectors) {
	n := len(xs)
	t, r, r2 := e.vectors(n), e.vectors(n), e.vectors(n)
	p01, p23, p45 := make(vectors, n), make(vectors, n), make(vectors, n)
	turn := func(op func(i int)) {
		for i := range xs {
			op(i)
		}
	}
	// The second operand of the processor's minimum and maximum is the result if one is NaN.
	bound := e.inRegister("power bound")
	turn(func(i int) { e.asm.VMINPD(xs[i], bound, xs[i]) })
	bound = e.inRegister("-power bound")
	turn(func(i int) { e.asm.VMAXPD(xs[i], bound, xs[i]) })
	turn(func(i int) { e.asm.VADDPD(e.constant("shift"), xs[i], t[i]) })
	turn(func(i int) { e.asm.VSUBPD(e.constant("shift"), t[i], r[i]) })
	turn(func(i int) { e.asm.VSUBPD(r[i], xs[i], r[i]) })
	turn(func(i int) { p01[i] = e.wide("power 1") })
	turn(func(i int) { e.asm.VFMADD213PD(e.constant("power 0"), r[i], p01[i]) })
	turn(func(i int) { p23[i] = e.wide("power 3") })
	turn(func(i int) { e.asm.VFMADD213PD(e.constant("power 2"), r[i], p23[i]) })
	turn(func(i int) { p45[i] = e.wide("power 5") })
	turn(func(i int) { e.asm.VFMADD213PD(e.constant("power 4"), r[i], p45[i]) })
	turn(func(i int) { e.asm.VMULPD(r[i], r[i], r2[i]) })
	turn(func(i int) { e.asm.VFMADD231PD(e.constant("power 6"), r2[i], p45[i]) })
	turn(func(i int) { e.asm.VFMADD213PD(p23[i], r2[i], p45[i]) })
	turn(func(i int) { e.asm.VFMADD213PD(p01[i], r2[i], p45[i]) })
	turn(func(i int) { e.asm.VPSLLQ(operand.U8(52), t[i], t[i]) })
	turn(func(i int) { e.asm.VPADDQ(t[i], p45[i], xs[i]) })
}

// reciprocal returns 1/d, as reciprocal of package vec does.
func (e *emitter) reciprocal(d reg.VecVirtual) reg.VecVirtual {
	s, rest := e.vector(), e.wide("one")
	if e.isAVX512 {
		y, one := e.asm.YMM(), e.asm.YMM()
		e.asm.VCVTPD2PS(d, y)
		e.asm.VMOVUPS(constantAddress("float one"), one)
		e.asm.VDIVPS(y, one, y)
		e.asm.VCVTPS2PD(y, s)
	} else {
		x, one := e.asm.XMM(), e.asm.XMM()
		e.asm.VCVTPD2PSY(d, x)
		e.asm.VMOVUPS(constantAddress("float one"), one)
		e.asm.VDIVPS(x, one, x)
		e.asm.VCVTPS2PD(x, s)
	}
	e.asm.VFNMADD231PD(d, s, rest)
	e.asm.VFMADD213PD(s, s, rest)
	return rest
}

// geluTanhs writes GELU in its tanh form, operation by operation as geluTanhsGo of package vec does.
func geluTanhs(e *emitter) {
	e.begin("geluTanhs", "func(dst, x *float32, n int)", "writes dst = x/(1+exp(-a)), a = 2·sqrt(2/π)·(x + "+
		"0.044715·x³), computed in float64.")
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(append([]string{"gelu first"}, powerConstants...)...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, func(ls []loop, p *part) {
		vs := e.geluExps(ls, p, x)
		for i, l := range ls {
			e.asm.VADDPD(e.constant("one"), vs[i], vs[i])
			s := e.reciprocal(vs[i])
			e.asm.VMULPD(e.widen(l.of(x, 0), p), s, s)
			e.narrow(s, l.of(dst, 0), p)
		}
	})
	e.end()
}

// geluTanhGrads writes the gradient of GELU, as geluTanhGradsGo of package vec does.
func geluTanhGrads(e *emitter) {
	e.begin("geluTanhGrads", "func(dst, x, dy *float32, n int)", "writes dy times the derivative of GELU at x, as "+
		"geluTanhs has it, computed in float64.")
	dst, x, dy := e.argument("dst"), e.argument("x"), e.argument("dy")
	e.hold(append([]string{"gelu first", "gelu slope"}, powerConstants...)...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, func(ls []loop, p *part) {
		vs := e.geluExps(ls, p, x)
		for i, l := range ls {
			v, d := vs[i], e.vector()
			e.asm.VADDPD(e.constant("one"), v, d)
			s := e.reciprocal(d)
			f, slope := e.widen(l.of(x, 0), p), e.wide("gelu slope 3")
			e.asm.VMULPD(s, v, v)
			e.asm.VMULPD(f, f, d)
			e.asm.VFMADD213PD(e.constant("gelu slope"), d, slope)
			e.asm.VMULPD(slope, f, f)
			e.asm.VFMADD213PD(e.constant("one"), f, v)
			e.asm.VMULPD(v, s, s)
			e.asm.VMULPD(e.widen(l.of(dy, 0), p), s, s)
			e.narrow(s, l.of(dst, 0), p)
		}
	})
	e.end()
}

// geluExps returns exp(-a) of the numbers at the positions of the loops.
func (e *emitter) geluExps(ls []loop, p *part, x reg.Register) vectors {
	vs := make(vectors, len(ls))
	for i, l := range ls {
		vs[i] = e.widen(l.of(x, 0), p)
		square, sum := e.vector(), e.wide("gelu third")
		e.asm.VMULPD(vs[i], vs[i], square)
		e.asm.VFMADD213PD(e.constant("gelu first"), square, sum)
		e.asm.VMULPD(sum, vs[i], vs[i])
	}
	e.powers(vs)
	return vs
}

// erfDegree is the degree of the polynomial of halfErfcs of package vec.
const erfDegree = 12

// wide fills a vector with a constant.
func (e *emitter) wide(name string) reg.VecVirtual {
	v := e.vector()
	e.asm.VBROADCASTSD(constantAddress(name), v)
	return v
}

// and writes the bits that two vectors of float64 share to the second one.
func (e *emitter) and(a, b reg.VecVirtual) {
	if e.isAVX512 {
		e.asm.VPANDQ(a, b, b)
		return
	}
	e.asm.VANDPD(a, b, b)
}

// halfErfcs returns exp(-x²/2), half of erfc(|x|/√2) and |x|, at most the bound of powers, of the
// numbers at a position, as halfErfcs of package vec has them.
func (e *emitter) halfErfcs(l loop, p *part, x reg.Register) (exp, half, size reg.VecVirtual) {
	exp = e.widen(l.of(x, 0), p)
	e.asm.VMULPD(exp, exp, exp)
	e.asm.VMULPD(e.wide("erf square"), exp, exp)
	e.powers(vectors{exp})
	size = e.widen(l.of(x, 0), p)
	e.and(e.wide("abs"), size)
	e.asm.VMINPD(size, e.inRegister("power bound"), size)
	d, z := e.wide("erf step"), e.wide("erf scale")
	e.asm.VFMADD213PD(e.constant("one"), size, d)
	u := e.reciprocal(d)
	e.asm.VFMADD213PD(e.wide("erf shift"), u, z)
	half = e.wide(fmt.Sprint("erf ", erfDegree))
	for k := erfDegree - 1; k >= 0; k-- {
		e.asm.VFMADD213PD(e.wide(fmt.Sprint("erf ", k)), z, half)
	}
	e.asm.VMULPD(u, half, half)
	e.asm.VMULPD(exp, half, half)
	return exp, half, size
}

// geluErfs writes GELU in its exact form, as geluErfsGo of package vec does.
func geluErfs(e *emitter) {
	e.begin(
		"geluErfs",
		"func(dst, x *float32, n int)",
		"writes dst = max(x, 0) - |x|·erfc(|x|/√2)/2, computed in float64.",
	)
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(powerConstants...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, each(func(l loop, p *part) {
		_, half, size := e.halfErfcs(l, p, x)
		positive := e.widen(l.of(x, 0), p)
		e.asm.VMAXPD(positive, e.zero(), positive) // the second operand if one is NaN
		e.asm.VFNMADD231PD(half, size, positive)
		e.narrow(positive, l.of(dst, 0), p)
	}))
	e.end()
}

// geluErfGrads writes its gradient, as geluErfGradsGo of package vec does.
func geluErfGrads(e *emitter) {
	e.begin(
		"geluErfGrads",
		"func(dst, x, dy *float32, n int)",
		"writes dy times the derivative of GELU at x, as geluErfs "+
			"has it, computed in float64.",
	)
	dst, x, dy := e.argument("dst"), e.argument("x"), e.argument("dy")
	e.hold(powerConstants...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, each(func(l loop, p *part) {
		exp, half, _ := e.halfErfcs(l, p, x)
		v := e.widen(l.of(x, 0), p)
		e.asm.VMULPD(v, exp, exp)
		other := e.vector()
		e.asm.VSUBPD(half, e.inRegister("one"), other)
		if e.isAVX512 {
			k := e.asm.K()
			e.asm.VCMPPD(operand.U8(greater), e.zero(), v, k)
			e.asm.VMOVAPD(other, k, half)
		} else {
			mask := e.vector()
			e.asm.VCMPPD(operand.U8(greater), e.zero(), v, mask)
			e.asm.VBLENDVPD(mask, other, half, half)
		}
		e.asm.VFMADD231PD(e.wide("density"), exp, half)
		e.asm.VMULPD(e.widen(l.of(dy, 0), p), half, half)
		e.narrow(half, l.of(dst, 0), p)
	}))
	e.end()
}
