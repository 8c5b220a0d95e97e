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
	e.begin("combine", combineSignature,
		"writes dst[i] = Σ a[k]·v[k][i] for begin <= i < end and k < terms, 1 to 6.")
	e.combine(func(sum func(l loop, p *part) reg.VecVirtual, terms int, dst, at, n reg.GPVirtual) {
		e.pass(fmt.Sprint("terms", terms), at, n, e.lanes, unrollOf(terms), each(func(l loop, p *part) {
			e.store(sum(l, p), l.of(dst, 0), p)
		}))
	})
}

// combineStream is the same past the caches.
func combineStream(e *emitter) {
	e.begin("combineStream", combineSignature,
		"is combine with stores that go past the caches. dst[begin] begins a cache line, and end-begin is a positive multiple of 16.")
	e.combine(func(sum func(l loop, p *part) reg.VecVirtual, terms int, dst, at, n reg.GPVirtual) {
		e.Label(fmt.Sprint("terms", terms, "_line"))
		for v := range 16 / e.lanes {
			l := loop{e, at, v * e.lanes}
			e.VMOVNTPS(sum(l, nil), l.of(dst, 0))
		}
		e.ADDQ(operand.U8(16), at)
		e.SUBQ(operand.U8(16), n)
		e.JNZ(operand.LabelRef(fmt.Sprint("terms", terms, "_line")))
		e.SFENCE()
	})
}

// unrollOf is how many vectors of a combination are worked on at once.
func unrollOf(terms int) int {
	if terms > 3 {
		return 2
	}
	return 4
}

// combine chooses the loop by the number of terms.
func (e *emitter) combine(write func(sum func(loop, *part) reg.VecVirtual, terms int, dst, at, n reg.GPVirtual)) {
	dst, v, a := e.argument("dst"), e.argument("v"), e.argument("a")
	terms, at, n := e.argument("terms"), e.argument("begin"), e.argument("end")
	e.SUBQ(at, n)
	for k := 1; k < maxTerms; k++ {
		e.CMPQ(terms, operand.U8(k))
		e.JEQ(operand.LabelRef(fmt.Sprint("terms", k)))
	}
	for k := maxTerms; k > 0; k-- {
		e.Label(fmt.Sprint("terms", k))
		write(e.sum(v, a, k), k, dst, at, n)
		e.end()
	}
}

// sum loads the coefficients and the addresses, and returns how to combine the vectors at a place.
func (e *emitter) sum(vectorsAt, factorsAt reg.GPVirtual, terms int) func(loop, *part) reg.VecVirtual {
	v, a := make([]reg.GPVirtual, terms), make(vectors, terms)
	for k := range terms {
		v[k], a[k] = e.GP64(), e.vector()
		e.MOVQ(operand.Mem{Base: vectorsAt, Disp: 8 * k}, v[k])
		e.VBROADCASTSS(operand.Mem{Base: factorsAt, Disp: 4 * k}, a[k])
	}
	return func(l loop, p *part) reg.VecVirtual {
		var s reg.VecVirtual
		for k := range terms {
			x := e.vector()
			if p == nil {
				e.VMULPS(l.of(v[k], 0), a[k], x)
			} else {
				e.VMULPS(e.load(l.of(v[k], 0), p), a[k], x)
			}
			if k == 0 {
				s = x
			} else {
				e.VADDPS(x, s, s)
			}
		}
		return s
	}
}
