package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// differences writes the weighted sum of the differences between one vector and up to six others,
// stored, or added to one vector or two in the same pass: all vectors are then read together, in an
// order that the hardware prefetcher follows.
func differences(e *emitter) {
	e.begin("sumDiffs", "func(sum, start, own *float32, v **float32, a *float32, terms, n int, s float32)",
		"writes sum = s·start + Σ a[k]·(own-v[k]) for n numbers and k < terms, 1 to 6.")
	sum := e.argument("sum")
	e.diffs(func(total reg.VecVirtual, l loop, p *part) { e.store(total, l.of(sum, 0), p) })

	e.begin("addDiffs1", "func(x, start, own *float32, v **float32, a *float32, terms, n int, s, b float32)",
		"writes x += b·S with the S of sumDiffs.")
	e.addDiffs("x")
	e.begin("addDiffs2", "func(x, y, start, own *float32, v **float32, a *float32, terms, n int, s, b, c float32)",
		"writes x += b·S and then y += c·S with the S of sumDiffs.")
	e.addDiffs("x", "y")
}

// addDiffs adds the sum to the vectors of those names.
func (e *emitter) addDiffs(names ...string) {
	var to []reg.GPVirtual
	var factors vectors
	for i, name := range names {
		to = append(to, e.argument(name))
		factors = append(factors, e.broadcast([]string{"b", "c"}[i]))
	}
	e.diffs(func(total reg.VecVirtual, l loop, p *part) {
		for i, x := range to {
			e.store(e.plusTimes(e.load(l.of(x, 0), p), factors[i], total), l.of(x, 0), p)
		}
	})
}

// diffs computes the sum, for each number of terms, and calls use with it at each position.
func (e *emitter) diffs(use func(total reg.VecVirtual, l loop, p *part)) {
	start, own, v, a := e.argument("start"), e.argument("own"), e.argument("v"), e.argument("a")
	scale, terms, at, n := e.broadcast("s"), e.argument("terms"), e.start(), e.argument("n")
	e.byTerms(terms, func(k int) {
		sum := e.sum(v, a, k)
		e.pass(fmt.Sprint("terms", k), at, n, e.lanes, unrollOf(k), each(func(l loop, p *part) {
			total, x := e.vector(), e.load(l.of(own, 0), p)
			e.asm.VMULPS(e.load(l.of(start, 0), p), scale, total)
			for i, v := range sum.v {
				total = e.plusTimes(total, sum.a[i], e.difference(x, e.load(l.of(v, 0), p)))
			}
			use(total, l, p)
		}))
	})
}

// scatter writes the addition to selected coordinates. It needs only AVX: storing one number after
// the other is as fast.
func scatter(e *emitter) {
	if e.isAVX512 {
		return
	}
	e.begin("scatterAdd", "func(v *float32, at, next *uint32, p *float32, n int, a float32)",
		"writes v[at[j]] += a·p[j]; it prefetches the numbers at the n coordinates of next. n is a multiple of 4.")
	v, p, a := e.argument("v"), e.argument("p"), e.broadcast("a")
	e.coordinates(dense, []reg.GPVirtual{v}, func(j operand.Mem, i reg.GPVirtual) {
		x, m := e.asm.XMM(), operand.Mem{Base: v, Index: i, Scale: 4}
		j.Base = p
		e.asm.VMOVSS(j, x)
		e.asm.VMULSS(x, a.AsX(), x)
		e.asm.VADDSS(m, x, x)
		e.asm.VMOVSS(x, m)
	})
	e.end()
}
