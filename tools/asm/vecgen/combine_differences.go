package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// diffPrefetch is how many numbers ahead combineDiffs prefetches: the next page, which the hardware
// prefetcher does not reach.
const diffPrefetch = 1024

// combineDiffs writes a combination and a sum of differences that is added to it and to other
// vectors, in one pass. It has so many operands that a loop goes over them at each position;
// compared with the memory that costs nothing.
func combineDiffs(e *emitter) {
	e.begin("combineDiffs", "func(dst, start, own *float32, v **float32, a *float32, base, others, all, begin, end "+
		"int, s, b float32)",
		"writes dst = Σ a[k]·v[k] + b·S for k < base, at least one, and v[k] += a[k]·S for others <= k < all, with "+
			"S = s·start + Σ a[k]·(own-v[k]) for base <= k < others, all for the numbers from begin to "+
			"end. Without start S begins with zero.")
	m := &diffCombiner{emitter: e, dst: e.argument("dst"), start: e.argument("start"), own: e.argument("own"),
		v: e.argument("v"), a: e.argument("a"), base: e.argument("base"), others: e.argument("others"),
		all: e.argument("all"), k: e.asm.GP64(), from: e.asm.GP64()}
	m.scale, m.by = e.broadcast("s"), e.broadcast("b")
	at, n := e.argument("begin"), e.argument("end")
	e.asm.SUBQ(at, n)
	unroll := 4
	if !e.isAVX512 {
		unroll = 2
	}
	e.pass("pass", at, n, e.lanes, unroll, m.at)
	e.end()
}

// diffCombiner holds the operands of combineDiffs.
type diffCombiner struct {
	*emitter
	dst, start, own, v, a reg.GPVirtual
	base, others, all     reg.GPVirtual
	k, from               reg.GPVirtual // current operand, and its first number
	scale, by             reg.VecVirtual
	labels                int
}

// at computes some adjacent positions.
func (m *diffCombiner) at(ls []loop, p *part) {
	m.labels++
	total, sum, own := m.vectors(len(ls)), m.vectors(len(ls)), m.vectors(len(ls))
	factor := m.vector()
	m.asm.MOVQ(operand.Mem{Base: m.v}, m.from)
	m.asm.VBROADCASTSS(operand.Mem{Base: m.a}, factor)
	for i, l := range ls {
		m.prefetch(l, m.from, p)
		m.asm.VMULPS(m.load(l.of(m.from, 0), p), factor, total[i])
	}
	m.asm.MOVQ(operand.U32(1), m.k)
	m.each("base", m.base, factor, func() {
		for i, l := range ls {
			m.prefetch(l, m.from, p)
			m.add(total[i], factor, m.load(l.of(m.from, 0), p))
		}
	})
	m.begins(ls, p, sum)
	for i, l := range ls {
		m.prefetch(l, m.own, p)
		m.asm.VMOVUPS(m.load(l.of(m.own, 0), p), own[i])
	}
	m.each("others", m.others, factor, func() {
		for i, l := range ls {
			m.prefetch(l, m.from, p)
			m.add(sum[i], factor, m.difference(own[i], m.load(l.of(m.from, 0), p)))
		}
	})
	for i, l := range ls {
		m.prefetch(l, m.dst, p)
		m.add(total[i], m.by, sum[i])
		m.store(total[i], l.of(m.dst, 0), p)
	}
	m.each("to", m.all, factor, func() {
		for i, l := range ls {
			m.prefetch(l, m.from, p)
			m.store(m.plusTimes(m.load(l.of(m.from, 0), p), factor, sum[i]), l.of(m.from, 0), p)
		}
	})
}

// begins starts the sums.
func (m *diffCombiner) begins(ls []loop, p *part, sum vectors) {
	none, done := m.label("none"), m.label("begun")
	m.asm.TESTQ(m.start, m.start)
	m.asm.JZ(operand.LabelRef(none))
	for i, l := range ls {
		m.prefetch(l, m.start, p)
		m.asm.VMULPS(m.load(l.of(m.start, 0), p), m.scale, sum[i])
	}
	m.asm.JMP(operand.LabelRef(done))
	m.asm.Label(none)
	for i := range ls {
		m.asm.VXORPS(sum[i].AsX(), sum[i].AsX(), sum[i].AsX())
	}
	m.asm.Label(done)
}

// each calls body for the operands from the current one to end, with its address and its factor.
func (m *diffCombiner) each(name string, end reg.GPVirtual, factor reg.VecVirtual, body func()) {
	again, done := m.label(name), m.label(name+"_done")
	m.asm.CMPQ(m.k, end)
	m.asm.JGE(operand.LabelRef(done))
	m.asm.Label(again)
	m.asm.MOVQ(operand.Mem{Base: m.v, Index: m.k, Scale: 8}, m.from)
	m.asm.VBROADCASTSS(operand.Mem{Base: m.a, Index: m.k, Scale: 4}, factor)
	body()
	m.asm.INCQ(m.k)
	m.asm.CMPQ(m.k, end)
	m.asm.JLT(operand.LabelRef(again))
	m.asm.Label(done)
}

func (m *diffCombiner) label(name string) string { return fmt.Sprint(name, m.labels) }

// add computes sum += a·x, the product rounded first.
func (m *diffCombiner) add(sum, a, x reg.VecVirtual) {
	y := m.vector()
	m.asm.VMULPS(x, a, y)
	m.asm.VADDPS(y, sum, sum)
}

// prefetch prefetches one page ahead in a vector, once for each cache line.
func (m *diffCombiner) prefetch(l loop, v reg.GPVirtual, p *part) {
	if p == nil && l.disp%16 == 0 {
		m.asm.PREFETCHT1(l.of(v, diffPrefetch))
	}
}
