package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// layerRows writes the loops of layer normalization over a row.
func layerRows(e *emitter) {
	e.centered("centeredSum", "Σ (x - center)", func(reg.VecVirtual) {})
	e.centered("centeredSquares", "Σ (x - center)²", func(v reg.VecVirtual) { e.asm.VMULPD(v, v, v) })
	e.normalize("normalizeRow", false)
	e.normalize("normalizeShiftRow", true)
	e.gradSums()
	e.gradRow()
}

// centered writes a sum over x - center.
func (e *emitter) centered(name, what string, of func(v reg.VecVirtual)) {
	e.begin(name, "func(x *float32, center *float64, n int) float64",
		"returns "+what+" in float64: number j is added to partial sum j mod 16, and sum l takes sum l+8, l+4, l+2 "+
			"and l+1 in turn.")
	x, center := e.argument("x"), e.vector()
	e.asm.VBROADCASTSD(operand.Mem{Base: e.argument("center")}, center)
	acc := e.zeros(rowSums / e.half)
	e.groups("sum", e.start(), e.argument("n"), len(acc), 1, func(l loop, gs []int, p *part) {
		v := e.widen(l.of(x, gs[0]*e.half), p)
		e.asm.VSUBPD(center, v, v)
		of(v)
		e.asm.VADDPD(e.onlyWide(v, p), acc[gs[0]], acc[gs[0]])
	})
	e.asm.Store(e.tree(acc), e.asm.ReturnIndex(0))
	e.end()
}

// param fills a vector with number i of params.
func (e *emitter) param(params reg.Register, i int) reg.VecVirtual {
	v := e.vector()
	e.asm.VBROADCASTSD(operand.Mem{Base: params, Disp: 8 * i}, v)
	return v
}

// normalize writes the results of a row.
func (e *emitter) normalize(name string, shift bool) {
	signature, doc := "func(dst, x, gamma *float32, params *float64, n int)", "writes ((x - params[0])·params[1])·gamma"
	if shift {
		signature, doc = "func(dst, x, gamma, beta *float32, params *float64, n int)", doc+" + beta"
	}
	e.begin(name, signature, doc+", computed in float64.")
	dst, x, gamma, params := e.argument("dst"), e.argument("x"), e.argument("gamma"), e.argument("params")
	var beta reg.GPVirtual
	if shift {
		beta = e.argument("beta")
	}
	center, scale := e.param(params, 0), e.param(params, 1)
	e.pass("pass", e.start(), e.argument("n"), e.half, 2, each(func(l loop, p *part) {
		v := e.widen(l.of(x, 0), p)
		e.asm.VSUBPD(center, v, v)
		e.asm.VMULPD(scale, v, v)
		e.asm.VMULPD(e.widen(l.of(gamma, 0), p), v, v)
		if shift {
			e.asm.VADDPD(e.widen(l.of(beta, 0), p), v, v)
		}
		e.narrow(v, l.of(dst, 0), p)
	}))
	e.end()
}

// slopeSums is the number of partial sums of the gradient of a row.
const slopeSums = 8

// gradSums writes the sums of the gradient of a row.
func (e *emitter) gradSums() {
	e.begin("gradSums", "func(sums *float64, x, dy, gamma *float32, center *float64, n int)",
		"writes Σ g, Σ g·d and Σ d to sums, with d = x - center and g = gamma·dy, in float64: number j is added to "+
			"partial sum j mod 8, and sum l takes sum l+4, l+2 and l+1 in turn.")
	sums, x, dy, gamma := e.argument("sums"), e.argument("x"), e.argument("dy"), e.argument("gamma")
	center := e.vector()
	e.asm.VBROADCASTSD(operand.Mem{Base: e.argument("center")}, center)
	n := slopeSums / e.half
	slope, along, off := e.zeros(n), e.zeros(n), e.zeros(n)
	e.groups("sum", e.start(), e.argument("n"), n, 1, func(l loop, gs []int, p *part) {
		g, at := gs[0], gs[0]*e.half
		d, v := e.widen(l.of(x, at), p), e.widen(l.of(dy, at), p)
		e.asm.VSUBPD(center, d, d)
		d = e.onlyWide(d, p)
		e.asm.VMULPD(e.widen(l.of(gamma, at), p), v, v)
		e.asm.VADDPD(d, off[g], off[g])
		e.asm.VADDPD(v, slope[g], slope[g])
		e.asm.VMULPD(v, d, d)
		e.asm.VADDPD(d, along[g], along[g])
	})
	for i, acc := range []vectors{slope, along, off} {
		e.asm.VMOVSD(e.tree(acc), operand.Mem{Base: sums, Disp: 8 * i})
	}
	e.end()
}

// gradRow writes the gradient of a row.
func (e *emitter) gradRow() {
	e.begin("gradRow", "func(dx, x, dy, gamma *float32, forGamma, forBeta, params *float64, n int)",
		"writes dx = ((g - A) - x̂·B)·rstd with x̂ = ((x - mean) - delta)·rstd and g = gamma·dy, and adds dy·x̂ to "+
			"forGamma and dy to forBeta, in float64. params are mean, delta, rstd, A and B. n is a multiple of 8.")
	dx, x, dy, gamma := e.argument("dx"), e.argument("x"), e.argument("dy"), e.argument("gamma")
	forGamma, forBeta, params := e.argument("forGamma"), e.argument("forBeta"), e.argument("params")
	mean, delta, rstd, a, b := e.param(params, 0), e.param(params, 1), e.param(params, 2), e.param(params, 3),
		e.param(params, 4)
	at, n := e.start(), e.argument("n")
	done := operand.LabelRef("done")
	e.asm.SUBQ(operand.U32(e.half), n)
	e.asm.JLT(done)
	e.asm.Label("numbers")
	l := loop{e, at, 0}
	wide := func(base reg.Register) operand.Mem { return operand.Mem{Base: base, Index: at, Scale: 8} }
	normal, d, g := e.widen(l.of(x, 0), nil), e.widen(l.of(dy, 0), nil), e.widen(l.of(gamma, 0), nil)
	e.asm.VSUBPD(mean, normal, normal)
	e.asm.VSUBPD(delta, normal, normal)
	e.asm.VMULPD(rstd, normal, normal)
	e.asm.VMULPD(d, g, g)
	e.asm.VSUBPD(a, g, g)
	sum, product := e.vector(), e.vector()
	e.asm.VADDPD(wide(forBeta), d, sum)
	e.asm.VMOVUPD(sum, wide(forBeta))
	e.asm.VMULPD(normal, d, product)
	e.asm.VADDPD(wide(forGamma), product, product)
	e.asm.VMOVUPD(product, wide(forGamma))
	e.asm.VMULPD(b, normal, normal)
	e.asm.VSUBPD(normal, g, g)
	e.asm.VMULPD(rstd, g, g)
	e.narrow(g, l.of(dx, 0), nil)
	e.asm.ADDQ(operand.U32(e.half), at)
	e.asm.SUBQ(operand.U32(e.half), n)
	e.asm.JGE(operand.LabelRef("numbers"))
	e.asm.Label("done")
	e.end()
}
