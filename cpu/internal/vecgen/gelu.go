package main

import "github.com/mmcloughlin/avo/reg"

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
