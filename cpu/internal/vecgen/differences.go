package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// differences writes the weighted sum of what one vector is away from up to six others.
func differences(e *emitter) {
	e.begin("addDiffs", "func(sum, own *float32, v **float32, a *float32, terms, begin, end int)",
		"writes sum[i] += Σ a[k]·(own[i]-v[k][i]) for begin <= i < end and k < terms, 1 to 6.")
	to, own, v, a := e.argument("sum"), e.argument("own"), e.argument("v"), e.argument("a")
	terms, at, n := e.argument("terms"), e.argument("begin"), e.argument("end")
	e.SUBQ(at, n)
	e.byTerms(terms, func(k int) {
		s := e.sum(v, a, k)
		e.pass(fmt.Sprint("terms", k), at, n, e.lanes, unrollOf(k), each(func(l loop, p *part) {
			e.store(s.plusDiffs(to, own, l, p), l.of(to, 0), p)
		}))
	})
}

// plusDiffs returns the old sum and the terms of a place.
func (s *sum) plusDiffs(to, own reg.GPVirtual, l loop, p *part) reg.VecVirtual {
	total, x := s.load(l.of(to, 0), p), s.load(l.of(own, 0), p)
	for k, v := range s.v {
		d := s.vector()
		if p == nil {
			s.VSUBPS(l.of(v, 0), x, d)
		} else {
			s.VSUBPS(s.load(l.of(v, 0), p), x, d)
		}
		s.VMULPS(d, s.a[k], d)
		s.VADDPS(d, total, total)
	}
	return total
}

// scatter writes the adding to selected coordinates. It needs nothing above AVX: to store one number after the other is as fast.
func scatter(e *emitter) {
	if e.isAVX512 {
		return
	}
	e.begin("scatterAdd", "func(v *float32, at, next *uint32, p *float32, n int, a float32)", "writes v[at[j]] += a·p[j];",
		"the coordinates that the n at next select are asked for on the way. n is a multiple of 4.")
	v, p, a := e.argument("v"), e.argument("p"), e.broadcast("a")
	e.coordinates([]reg.GPVirtual{v}, func(j operand.Mem, i reg.GPVirtual) {
		x, m := e.XMM(), operand.Mem{Base: v, Index: i, Scale: 4}
		j.Base = p
		e.VMOVSS(j, x)
		e.VMULSS(x, a.AsX(), x)
		e.VADDSS(m, x, x)
		e.VMOVSS(x, m)
	})
	e.end()
}
