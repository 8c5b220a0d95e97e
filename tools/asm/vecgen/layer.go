package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// layerRows writes the loops of layer normalization over rows of n numbers. Rows of float64 have
// whole groups of 16 numbers, so that their last vector is read and written as a whole.
func layerRows(e *emitter) {
	e.widenSums()
	e.centerSquares()
	e.normalize("normalizeRows", false)
	e.normalize("normalizeShiftRows", true)
	e.gradSums()
	e.gradRows("gradRows", false)
	e.gradRows("gradAddRows", true)
}

// wideOf returns the operand at the position of the loop in a vector of float64 at base.
func (l loop) wideOf(base reg.Register, plus int) operand.Mem {
	return operand.Mem{Base: base, Index: l.at, Scale: 8, Disp: 8 * (l.disp + plus)}
}

// loadWide reads a vector of float64.
func (e *emitter) loadWide(m operand.Mem) reg.VecVirtual {
	v := e.vector()
	e.asm.VMOVUPD(m, v)
	return v
}

// param fills a vector with a float64 in memory.
func (e *emitter) param(base reg.Register, i int) reg.VecVirtual {
	v := e.vector()
	e.asm.VBROADCASTSD(operand.Mem{Base: base, Disp: 8 * i}, v)
	return v
}

// next advances pointers to the next row: of n float32, and of stride float64.
func (e *emitter) next(n, stride reg.GPVirtual, narrow, wide []reg.GPVirtual) {
	for _, base := range narrow {
		e.asm.LEAQ(operand.Mem{Base: base, Index: n, Scale: 4}, base)
	}
	for _, base := range wide {
		e.asm.LEAQ(operand.Mem{Base: base, Index: stride, Scale: 8}, base)
	}
}

// copied returns a copy of a register.
func (e *emitter) copied(r reg.GPVirtual) reg.GPVirtual {
	c := e.asm.GP64()
	e.asm.MOVQ(r, c)
	return c
}

const (
	// rowsOrder documents the order of the sums over a row.
	rowsOrder = "number j is added to partial sum j mod 16, and sum l takes sum l+8, l+4, l+2 and l+1 in turn"
	// rowsCounts documents the counts.
	rowsCounts = " Rows of float64 lie stride numbers apart. Both counts are at least 1."
)

// widenSums writes the first pass over rows.
func (e *emitter) widenSums() {
	e.begin("widenSums", "func(sums, wide *float64, x *float32, n, rows, stride int)",
		"writes rows of x to wide and Σ x of each to sums, in float64: "+rowsOrder+"."+rowsCounts)
	sums, wide, x := e.argument("sums"), e.argument("wide"), e.argument("x")
	n, rows, stride := e.argument("n"), e.argument("rows"), e.argument("stride")
	e.repeat("row", rows, func() {
		acc := e.zeros(rowSums / e.half)
		e.groups("sum", e.start(), e.copied(n), len(acc), 1, func(l loop, gs []int, p *part) {
			v := e.widen(l.of(x, gs[0]*e.half), p)
			e.asm.VMOVUPD(v, l.wideOf(wide, gs[0]*e.half))
			e.asm.VADDPD(v, acc[gs[0]], acc[gs[0]])
		})
		e.asm.VMOVSD(e.tree(acc), operand.Mem{Base: sums})
		e.asm.ADDQ(operand.U8(8), sums)
		e.next(n, stride, []reg.GPVirtual{x}, []reg.GPVirtual{wide})
	})
	e.end()
}

// centerSquares writes the second pass over rows.
func (e *emitter) centerSquares() {
	e.begin("centerSquares", "func(sums, wide, centers *float64, n, rows, stride int)",
		"subtracts the center of each row from wide and writes the sum of squares to sums: "+rowsOrder+"."+rowsCounts)
	sums, wide, centers := e.argument("sums"), e.argument("wide"), e.argument("centers")
	n, rows, stride := e.argument("n"), e.argument("rows"), e.argument("stride")
	e.repeat("row", rows, func() {
		center, acc := e.param(centers, 0), e.zeros(rowSums/e.half)
		e.groups("sum", e.start(), e.copied(n), len(acc), 1, func(l loop, gs []int, p *part) {
			at := l.wideOf(wide, gs[0]*e.half)
			v := e.loadWide(at)
			e.asm.VSUBPD(center, v, v)
			v = e.onlyWide(v, p)
			e.asm.VMOVUPD(v, at)
			e.asm.VMULPD(v, v, v)
			e.asm.VADDPD(v, acc[gs[0]], acc[gs[0]])
		})
		e.asm.VMOVSD(e.tree(acc), operand.Mem{Base: sums})
		e.asm.ADDQ(operand.U8(8), sums)
		e.asm.ADDQ(operand.U8(8), centers)
		e.next(n, stride, nil, []reg.GPVirtual{wide})
	})
	e.end()
}

// normalize writes the results of rows.
func (e *emitter) normalize(name string, shift bool) {
	signature := "func(dst *float32, wide, gamma, scales *float64, n, rows, stride int)"
	doc := "writes (wide·scale)·gamma"
	if shift {
		signature = "func(dst *float32, wide, gamma, beta, scales *float64, n, rows, stride int)"
		doc += " + beta"
	}
	e.begin(name, signature, doc+" for rows, scale that of the row, computed in float64."+rowsCounts)
	dst, wide, gamma, scales := e.argument("dst"), e.argument("wide"), e.argument("gamma"), e.argument("scales")
	n, rows, stride := e.argument("n"), e.argument("rows"), e.argument("stride")
	var beta reg.GPVirtual
	if shift {
		beta = e.argument("beta")
	}
	e.repeat("row", rows, func() {
		scale := e.param(scales, 0)
		e.pass("pass", e.start(), e.copied(n), e.half, 4, each(func(l loop, p *part) {
			v := e.vector()
			e.asm.VMULPD(l.wideOf(wide, 0), scale, v)
			e.asm.VMULPD(l.wideOf(gamma, 0), v, v)
			if shift {
				e.asm.VADDPD(l.wideOf(beta, 0), v, v)
			}
			e.narrow(v, l.of(dst, 0), p)
		}))
		e.asm.ADDQ(operand.U8(8), scales)
		e.next(n, stride, []reg.GPVirtual{dst}, []reg.GPVirtual{wide})
	})
	e.end()
}

// slopeSums is the number of partial sums of the gradient of a row.
const slopeSums = 8

// gradSums writes the sums of the gradient of rows.
func (e *emitter) gradSums() {
	e.begin("gradSums",
		"func(sums, wide, wideDY *float64, x, dy *float32, gamma, centers *float64, n, rows, stride int)",
		"writes d = x - center to wide, dy to wideDY, and Σ g, Σ g·d and Σ d of each row to sums, with g = gamma·dy, "+
			"in float64: number j is added to partial sum j mod 8, and sum l takes sum l+4, l+2 and l+1 in turn."+
			rowsCounts)
	sums, wide, wideDY := e.argument("sums"), e.argument("wide"), e.argument("wideDY")
	x, dy, gamma, centers := e.argument("x"), e.argument("dy"), e.argument("gamma"), e.argument("centers")
	n, rows, stride := e.argument("n"), e.argument("rows"), e.argument("stride")
	e.repeat("row", rows, func() {
		center, count := e.param(centers, 0), slopeSums/e.half
		slope, along, off := e.zeros(count), e.zeros(count), e.zeros(count)
		e.groups("sum", e.start(), e.copied(n), count, 1, func(l loop, gs []int, p *part) {
			g, at := gs[0], gs[0]*e.half
			d, v := e.widen(l.of(x, at), p), e.widen(l.of(dy, at), p)
			e.asm.VSUBPD(center, d, d)
			d = e.onlyWide(d, p)
			e.asm.VMOVUPD(d, l.wideOf(wide, at))
			e.asm.VMOVUPD(v, l.wideOf(wideDY, at))
			e.asm.VMULPD(l.wideOf(gamma, at), v, v)
			e.asm.VADDPD(d, off[g], off[g])
			e.asm.VADDPD(v, slope[g], slope[g])
			e.asm.VMULPD(v, d, d)
			e.asm.VADDPD(d, along[g], along[g])
		})
		for i, acc := range []vectors{slope, along, off} {
			e.asm.VMOVSD(e.tree(acc), operand.Mem{Base: sums, Disp: 8 * i})
		}
		e.asm.ADDQ(operand.U8(24), sums)
		e.asm.ADDQ(operand.U8(8), centers)
		e.next(n, stride, []reg.GPVirtual{x, dy}, []reg.GPVirtual{wide, wideDY})
	})
	e.end()
}

// gradRows writes the gradient of rows.
func (e *emitter) gradRows(name string, add bool) {
	signature, doc := "func(dx *float32, d, dy, gamma, forGamma, forBeta, slopes *float64, n, rows, stride int)", ""
	if add {
		signature = "func(dx, add *float32, d, dy, gamma, forGamma, forBeta, slopes *float64, n, rows, stride int)"
		doc = ", to which add is added in float32"
	}
	e.begin(name, signature, "writes dx = ((g - A) - x̂·B)·rstd"+doc+", with x̂ = (d - delta)·rstd and g = gamma·dy, "+
		"and adds dy·x̂ to forGamma and dy to forBeta, in float64, for rows. slopes are delta, rstd, A and B of each "+
		"row."+rowsCounts)
	dx, wide, dy, gamma := e.argument("dx"), e.argument("d"), e.argument("dy"), e.argument("gamma")
	narrow := []reg.GPVirtual{dx}
	if add {
		narrow = append(narrow, e.argument("add"))
	}
	forGamma, forBeta, slopes := e.argument("forGamma"), e.argument("forBeta"), e.argument("slopes")
	n, rows, stride := e.argument("n"), e.argument("rows"), e.argument("stride")
	e.repeat("row", rows, func() {
		delta, rstd, a, b := e.param(slopes, 0), e.param(slopes, 1), e.param(slopes, 2),
			e.param(slopes, 3)
		e.pass("pass", e.start(), e.copied(n), e.half, 2, each(func(l loop, p *part) {
			normal, d, g := e.loadWide(l.wideOf(wide, 0)), e.loadWide(l.wideOf(dy, 0)), e.vector()
			e.asm.VSUBPD(delta, normal, normal)
			e.asm.VMULPD(rstd, normal, normal)
			e.asm.VMULPD(l.wideOf(gamma, 0), d, g)
			e.asm.VSUBPD(a, g, g)
			sum, product := e.vector(), e.vector()
			e.asm.VADDPD(l.wideOf(forBeta, 0), d, sum)
			e.asm.VMOVUPD(sum, l.wideOf(forBeta, 0))
			e.asm.VMULPD(normal, d, product)
			e.asm.VADDPD(l.wideOf(forGamma, 0), product, product)
			e.asm.VMOVUPD(product, l.wideOf(forGamma, 0))
			e.asm.VMULPD(b, normal, normal)
			e.asm.VSUBPD(normal, g, g)
			e.asm.VMULPD(rstd, g, g)
			half := e.narrowed(g)
			if add {
				e.asm.VADDPS(e.loadHalf(l.of(narrow[1], 0), p), half, half)
			}
			e.storeHalf(half, l.of(dx, 0), p)
		}))
		e.asm.ADDQ(operand.U8(32), slopes)
		e.next(n, stride, narrow, []reg.GPVirtual{wide, dy})
	})
	e.end()
}
