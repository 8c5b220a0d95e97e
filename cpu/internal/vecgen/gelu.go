package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// geluConstants are those of GELU besides expConstants.
var geluConstants = []string{"-gelu slope", "gelu slope", "gelu cubic", "gelu cubic 3"}

// geluTanhs writes GELU in its tanh form, operation by operation as geluTanhsGo of package vec does.
func geluTanhs(e *emitter) {
	e.begin("geluTanhs", "func(dst, x *float32, n int)", "writes dst = x/(1+exp(-a)), a = 2·sqrt(2/π)·(x + "+
		"0.044715·x³), computed in float64.")
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(append(append([]string{}, expConstants...), "-gelu slope", "gelu cubic")...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, func(ls []loop, p *part) {
		vs := e.geluExps(ls, p, x)
		one := e.inRegister("one")
		for i, l := range ls {
			f := e.widen(l.of(x, 0), p)
			e.asm.VADDPD(one, vs[i], vs[i])
			e.asm.VDIVPD(vs[i], f, vs[i])
		}
		for i, l := range ls {
			e.narrow(vs[i], l.of(dst, 0), p)
		}
	})
	e.end()
}

// geluTanhGrads writes the gradient of GELU, as geluTanhGradsGo of package vec does.
func geluTanhGrads(e *emitter) {
	e.begin("geluTanhGrads", "func(dst, x, dy *float32, n int)", "writes dy times the derivative of GELU at x, as "+
		"geluTanhs has it, computed in float64.")
	dst, x, dy := e.argument("dst"), e.argument("x"), e.argument("dy")
	e.hold(append(append([]string{}, expConstants...), geluConstants...)...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, func(ls []loop, p *part) {
		vs := e.geluExps(ls, p, x)
		for i, l := range ls {
			v, s, slope, square := vs[i], e.vector(), e.widen(l.of(x, 0), p), e.vector()
			one := e.inRegister("one")
			e.asm.VADDPD(one, v, s)
			e.asm.VDIVPD(s, one, s)
			e.asm.VMULPD(slope, slope, square)
			e.asm.VMULPD(e.constant("gelu cubic 3"), square, square)
			e.asm.VADDPD(one, square, square)
			e.asm.VMULPD(e.constant("gelu slope"), slope, slope)
			e.asm.VMULPD(square, slope, slope)
			e.asm.VMULPD(s, v, v)
			e.asm.VMULPD(slope, v, v)
			e.asm.VADDPD(one, v, v)
			e.asm.VMULPD(v, s, s)
			e.asm.VMULPD(e.widen(l.of(dy, 0), p), s, v)
		}
		for i, l := range ls {
			e.narrow(vs[i], l.of(dst, 0), p)
		}
	})
	e.end()
}

// geluExps returns exp(-a) of the numbers at the positions of the loops.
func (e *emitter) geluExps(ls []loop, p *part, x reg.Register) vectors {
	vs := make(vectors, len(ls))
	for i, l := range ls {
		vs[i] = e.widen(l.of(x, 0), p)
		square := e.vector()
		e.asm.VMULPD(vs[i], vs[i], square)
		e.asm.VMULPD(e.constant("gelu cubic"), square, square)
		e.asm.VADDPD(e.constant("one"), square, square)
		e.asm.VMULPD(e.constant("-gelu slope"), vs[i], vs[i])
		e.asm.VMULPD(square, vs[i], vs[i])
	}
	e.exp(vs)
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

// halfErfcs returns exp(-x²/2) and half of erfc(|x|/√2) of the numbers at a position, as halfErfcs of
// package vec has them.
func (e *emitter) halfErfcs(l loop, p *part, x reg.Register) (exp, half reg.VecVirtual) {
	exp = e.widen(l.of(x, 0), p)
	e.asm.VMULPD(exp, exp, exp)
	e.asm.VMULPD(e.wide("minus half"), exp, exp)
	e.exp(vectors{exp})
	u, z, one := e.widen(l.of(x, 0), p), e.vector(), e.inRegister("one")
	e.and(e.wide("abs"), u)
	e.asm.VMULPD(e.wide("erf step"), u, u)
	e.asm.VADDPD(one, u, u)
	e.asm.VDIVPD(u, one, u)
	e.asm.VMULPD(e.wide("erf scale"), u, z)
	e.asm.VADDPD(e.wide("erf shift"), z, z)
	half = e.wide(fmt.Sprint("erf ", erfDegree))
	for k := erfDegree - 1; k >= 0; k-- {
		e.asm.VMULPD(z, half, half)
		e.asm.VADDPD(e.wide(fmt.Sprint("erf ", k)), half, half)
	}
	e.asm.VMULPD(u, half, half)
	e.asm.VMULPD(exp, half, half)
	return exp, half
}

// geluErfs writes GELU in its exact form, as geluErfsGo of package vec does.
func geluErfs(e *emitter) {
	e.begin(
		"geluErfs",
		"func(dst, x *float32, n int)",
		"writes dst = max(x, 0) - |x|·erfc(|x|/√2)/2, computed in float64.",
	)
	dst, x := e.argument("dst"), e.argument("x")
	e.hold(expConstants...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, each(func(l loop, p *part) {
		_, half := e.halfErfcs(l, p, x)
		positive, size := e.widen(l.of(x, 0), p), e.widen(l.of(x, 0), p)
		e.and(e.wide("abs"), size)
		e.asm.VMULPD(half, size, half)
		e.asm.VMAXPD(positive, e.zero(), positive) // the second operand if one is NaN
		e.asm.VSUBPD(half, positive, positive)
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
	e.hold(expConstants...)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, each(func(l loop, p *part) {
		exp, half := e.halfErfcs(l, p, x)
		v := e.widen(l.of(x, 0), p)
		e.asm.VMULPD(v, exp, exp)
		e.asm.VMULPD(e.wide("density"), exp, exp)
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
		e.asm.VADDPD(exp, half, half)
		e.asm.VMULPD(e.widen(l.of(dy, 0), p), half, half)
		e.narrow(half, l.of(dst, 0), p)
	}))
	e.end()
}
