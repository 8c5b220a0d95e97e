package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The intervals and the degree of a curve of package vec, and where its numbers are, in bytes.
const (
	curveParts  = 8
	curveDegree = 8
	termsAt     = 4 * curveParts
	scaleAt     = termsAt + 4*curveParts*(curveDegree+1)
	boundAt     = scaleAt + 4
)

// curve is a function in assembly: constants in registers, and the numbers of each interval, which
// are in registers if there are enough of them.
type curve struct {
	*emitter
	table                    reg.GPVirtual
	abs, shift, scale, bound reg.VecVirtual
	held                     vectors
}

// curve loads what a loop needs.
func (e *emitter) curve() *curve {
	c := &curve{emitter: e, table: e.argument("table"), abs: e.float("float abs"), shift: e.float("float shift"),
		scale: e.vector(), bound: e.vector()}
	e.asm.VBROADCASTSS(operand.Mem{Base: c.table, Disp: scaleAt}, c.scale)
	e.asm.VBROADCASTSS(operand.Mem{Base: c.table, Disp: boundAt}, c.bound)
	if e.isAVX512 {
		for k := range curveDegree + 2 {
			v := e.vector()
			e.asm.VBROADCASTF32X8(operand.Mem{Base: c.table, Disp: 4 * curveParts * k}, v)
			c.held = append(c.held, v)
		}
	}
	return c
}

// float fills a vector with a constant of float32.
func (e *emitter) float(name string) reg.VecVirtual {
	v := e.vector()
	e.asm.VBROADCASTSS(constantAddress(name), v)
	return v
}

// numbers returns the numbers of each interval: the centers, then the terms, the constants first.
func (c *curve) numbers(k int) reg.VecVirtual {
	if c.isAVX512 {
		return c.held[k]
	}
	v := c.vector()
	c.asm.VMOVUPS(operand.Mem{Base: c.table, Disp: 4 * curveParts * k}, v)
	return v
}

// at replaces each x by its size, which is the bound at most, and returns the curve there, as the
// method of the same name of package vec does. NaN stays NaN.
func (c *curve) at(xs vectors) vectors {
	parts, us, ys := c.vectors(len(xs)), c.vectors(len(xs)), c.vectors(len(xs))
	for i, x := range xs {
		if c.isAVX512 {
			c.asm.VPANDD(c.abs, x, x)
		} else {
			c.asm.VANDPS(c.abs, x, x)
		}
		c.asm.VMINPS(x, c.bound, x) // the second operand of the processor if one is NaN
		c.asm.VMOVAPS(x, parts[i])
		c.asm.VFMADD213PS(c.shift, c.scale, parts[i])
	}
	for i, v := range c.select8(c.numbers(0), parts) {
		c.asm.VSUBPS(v, xs[i], us[i])
	}
	copy(ys, c.select8(c.numbers(curveDegree+1), parts))
	for k := curveDegree; k > 0; k-- {
		for i, v := range c.select8(c.numbers(k), parts) {
			c.asm.VFMADD213PS(v, us[i], ys[i])
		}
	}
	return ys
}

// select8 returns the numbers of the intervals, whose low three bits count. With AVX-512 the low
// four bits do, and each number is there twice.
func (c *curve) select8(numbers reg.VecVirtual, parts vectors) vectors {
	vs := c.vectors(len(parts))
	for i, p := range parts {
		c.asm.VPERMPS(numbers, p, vs[i])
	}
	return vs
}

// curveTurns is how many vectors are computed at a time.
const curveTurns = 2

// gelus writes GELU, operation by operation as gelusGo of package vec does.
func gelus(e *emitter) {
	e.begin("gelus", "func(dst, x, table *float32, n int)", "writes dst = max(x, 0) - |x|·curve(|x|).")
	dst, x := e.argument("dst"), e.argument("x")
	c, zero := e.curve(), e.zero()
	e.pass("pass", e.start(), e.argument("n"), e.lanes, curveTurns, func(ls []loop, p *part) {
		sizes := e.loads(ls, x, p)
		for i, y := range c.at(sizes) {
			positive := e.load(ls[i].of(x, 0), p)
			e.asm.VMAXPS(positive, zero, positive) // the second operand of the processor if one is NaN
			e.asm.VFNMADD231PS(y, sizes[i], positive)
			e.store(positive, ls[i].of(dst, 0), p)
		}
	})
	e.end()
}

// loads reads vectors at the positions of the loops.
func (e *emitter) loads(ls []loop, x reg.Register, p *part) vectors {
	vs := make(vectors, len(ls))
	for i, l := range ls {
		vs[i] = e.load(l.of(x, 0), p)
	}
	return vs
}

// geluGrads writes the gradient of GELU, as geluGradsGo of package vec does.
func geluGrads(e *emitter) {
	e.begin("geluGrads", "func(dst, x, dy, table *float32, n int)",
		"writes dst = dy·(1 - curve(x)) where x > 0, else dy·curve(-x).")
	dst, x, dy := e.argument("dst"), e.argument("x"), e.argument("dy")
	c, one := e.curve(), e.float("float one")
	e.pass("pass", e.start(), e.argument("n"), e.lanes, curveTurns, func(ls []loop, p *part) {
		for i, y := range c.at(e.loads(ls, x, p)) {
			e.complement(e.load(ls[i].of(x, 0), p), one, y)
			e.asm.VMULPS(e.load(ls[i].of(dy, 0), p), y, y)
			e.store(y, ls[i].of(dst, 0), p)
		}
	})
	e.end()
}

// complement replaces y by one - y where x is above zero.
func (e *emitter) complement(x, one, y reg.VecVirtual) {
	zero := e.zero()
	if e.isAVX512 {
		k := e.asm.K()
		e.asm.VCMPPS(operand.U8(greater), zero, x, k)
		e.asm.VSUBPS(y, one, k, y)
		return
	}
	other := e.vector()
	e.asm.VSUBPS(y, one, other)
	e.asm.VCMPPS(operand.U8(greater), zero, x, x)
	e.asm.VBLENDVPS(x, other, y, y)
}
