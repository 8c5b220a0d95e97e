package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// maxTerms is how many terms are combined in one pass.
const maxTerms = 6

const combineSignature = "func(dst *float32, v **float32, a *float32, terms, begin, end int)"

// combine writes the combination of one to six vectors.
func combine(e *emitter) {
	e.begin("combine", combineSignature, "writes dst[i] = Σ a[k]·v[k][i] for begin <= i < end and k < terms, 1 to 6.")
	e.combinePass(0)
}

// combinePrefetch is how many numbers ahead combineAhead prefetches: a block of the combinations that
// are computed in one pass.
const combinePrefetch = 1024

// combineAhead writes the same, and prefetches.
func combineAhead(e *emitter) {
	e.begin("combineAhead", combineSignature, fmt.Sprintf("is combine, and prefetches the numbers %d behind.",
		combinePrefetch))
	e.combinePass(combinePrefetch)
}

// combinePass writes combinations that prefetch so many numbers ahead; 0: none.
func (e *emitter) combinePass(ahead int) {
	e.combine(func(sum *sum, terms int, dst, at, n reg.GPVirtual) {
		e.pass(fmt.Sprint("terms", terms), at, n, e.lanes, unrollOf(terms), each(func(l loop, p *part) {
			if ahead > 0 && p == nil && l.disp%perLine == 0 {
				loop{e, l.at, l.disp + ahead}.prefetch(sum.v)
			}
			e.store(sum.at(l, p), l.of(dst, 0), p)
		}))
	})
}

// combineStream writes the same with non-temporal stores.
func combineStream(e *emitter) {
	e.begin("combineStream", combineSignature,
		"is combine with non-temporal stores. dst[begin] begins a cache line, and end-begin is a positive multiple "+
			"of 16.")
	e.combine(func(sum *sum, terms int, dst, at, n reg.GPVirtual) {
		e.lines(fmt.Sprint("terms", terms, "_line"), at, n, sum.v, func(l loop) {
			e.asm.VMOVNTPS(sum.at(l, nil), l.of(dst, 0))
		})
	})
}

// unrollOf returns how many vectors of a combination are computed at once.
func unrollOf(terms int) int {
	if terms > 3 {
		return 2
	}
	return 4
}

// combine selects the loop by the number of terms.
func (e *emitter) combine(write func(sum *sum, terms int, dst, at, n reg.GPVirtual)) {
	dst, v, a := e.argument("dst"), e.argument("v"), e.argument("a")
	terms, at, n := e.argument("terms"), e.argument("begin"), e.argument("end")
	e.asm.SUBQ(at, n)
	e.byTerms(terms, func(k int) { write(e.sum(v, a, k), k, dst, at, n) })
}

// byTerms writes code for each number of terms, and the selection.
func (e *emitter) byTerms(terms reg.GPVirtual, write func(k int)) {
	for k := 1; k < maxTerms; k++ {
		e.asm.CMPQ(terms, operand.U8(k))
		e.asm.JEQ(operand.LabelRef(fmt.Sprint("terms", k)))
	}
	for k := maxTerms; k > 0; k-- {
		e.asm.Label(fmt.Sprint("terms", k))
		write(k)
		e.end()
	}
}

// sum is a combination whose coefficients and addresses are in registers.
type sum struct {
	*emitter
	v []reg.GPVirtual
	a vectors
}

func (e *emitter) sum(vectorsAt, factorsAt reg.GPVirtual, terms int) *sum {
	s := &sum{e, make([]reg.GPVirtual, terms), make(vectors, terms)}
	for k := range terms {
		s.v[k], s.a[k] = e.asm.GP64(), e.vector()
		e.asm.MOVQ(operand.Mem{Base: vectorsAt, Disp: 8 * k}, s.v[k])
		e.asm.VBROADCASTSS(operand.Mem{Base: factorsAt, Disp: 4 * k}, s.a[k])
	}
	return s
}

// at returns the combination at a position of a loop.
func (s *sum) at(l loop, p *part) reg.VecVirtual {
	var total reg.VecVirtual
	for k, v := range s.v {
		x := s.vector()
		if p == nil {
			s.asm.VMULPS(l.of(v, 0), s.a[k], x)
		} else {
			s.asm.VMULPS(s.load(l.of(v, 0), p), s.a[k], x)
		}
		if k == 0 {
			total = x
		} else {
			s.asm.VADDPS(x, total, total)
		}
	}
	return total
}
