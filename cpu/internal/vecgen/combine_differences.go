package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// moveAhead is how many numbers before their turn the operands of a move are asked for: the next
// page, where the processor's own prefetching does not look.
const moveAhead = 1024

// combineDiffs writes a combination and a sum of differences that is added to it and to others, all
// in one pass. There are so many numbers of operands that a loop goes over them at each place;
// beside the memory that costs nothing.
func combineDiffs(e *emitter) {
	e.begin("combineDiffs", "func(dst, start, own *float32, v **float32, a *float32, base, others, all, begin, end int, s, b float32)",
		"writes dst = Σ a[k]·v[k] + b·S for k < base, at least one, and v[k] += a[k]·S for others <= k < all, with",
		"S = s·start + Σ a[k]·(own-v[k]) for base <= k < others, all for the numbers from begin to end. Without start S begins with zero.")
	m := &mover{emitter: e, dst: e.argument("dst"), start: e.argument("start"), own: e.argument("own"),
		v: e.argument("v"), a: e.argument("a"),
		base: e.argument("base"), others: e.argument("others"), all: e.argument(
			"all"), k: e.asm.GP64(), from: e.asm.GP64()}
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

// mover is the operands of a move.
type mover struct {
	*emitter
	dst, start, own, v, a reg.GPVirtual
	base, others, all     reg.GPVirtual
	k, from               reg.GPVirtual // a loop's operand, and where it begins
	scale, by             reg.VecVirtual
	labels                int
}

// at makes the move at some places next to each other.
func (m *mover) at(ls []loop, p *part) {
	m.labels++
	total, sum, own := m.many(ls), m.many(ls), m.many(ls)
	factor := m.vector()
	m.asm.MOVQ(operand.Mem{Base: m.v}, m.from)
	m.asm.VBROADCASTSS(operand.Mem{Base: m.a}, factor)
	for i, l := range ls {
		m.ask(l, m.from, p)
		m.asm.VMULPS(m.load(l.of(m.from, 0), p), factor, total[i])
	}
	m.asm.MOVQ(operand.U32(1), m.k)
	m.each("base", m.base, factor, func() {
		for i, l := range ls {
			m.ask(l, m.from, p)
			m.add(total[i], factor, m.load(l.of(m.from, 0), p))
		}
	})
	m.begins(ls, p, sum)
	for i, l := range ls {
		m.ask(l, m.own, p)
		m.asm.VMOVUPS(m.load(l.of(m.own, 0), p), own[i])
	}
	m.each("others", m.others, factor, func() {
		for i, l := range ls {
			m.ask(l, m.from, p)
			m.add(sum[i], factor, m.difference(own[i], m.load(l.of(m.from, 0), p)))
		}
	})
	for i, l := range ls {
		m.ask(l, m.dst, p)
		m.add(total[i], m.by, sum[i])
		m.store(total[i], l.of(m.dst, 0), p)
	}
	m.each("to", m.all, factor, func() {
		for i, l := range ls {
			m.ask(l, m.from, p)
			m.store(m.plusTimes(m.load(l.of(m.from, 0), p), factor, sum[i]), l.of(m.from, 0), p)
		}
	})
}

// begins starts the sums.
func (m *mover) begins(ls []loop, p *part, sum vectors) {
	none, done := m.label("none"), m.label("begun")
	m.asm.TESTQ(m.start, m.start)
	m.asm.JZ(operand.LabelRef(none))
	for i, l := range ls {
		m.ask(l, m.start, p)
		m.asm.VMULPS(m.load(l.of(m.start, 0), p), m.scale, sum[i])
	}
	m.asm.JMP(operand.LabelRef(done))
	m.asm.Label(none)
	for i := range ls {
		m.asm.VXORPS(sum[i].AsX(), sum[i].AsX(), sum[i].AsX())
	}
	m.asm.Label(done)
}

// each runs body for the operands from the one at hand to end, with its address and its factor.
func (m *mover) each(name string, end reg.GPVirtual, factor reg.VecVirtual, body func()) {
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

func (m *mover) label(name string) string { return fmt.Sprint(name, m.labels) }

// add is sum += a·x, the product rounded first.
func (m *mover) add(sum, a, x reg.VecVirtual) {
	y := m.vector()
	m.asm.VMULPS(x, a, y)
	m.asm.VADDPS(y, sum, sum)
}

// many returns a vector for each place.
func (m *mover) many(ls []loop) vectors {
	vs := make(vectors, len(ls))
	for i := range vs {
		vs[i] = m.vector()
	}
	return vs
}

// ask prefetches what a vector has a page further on, once for each line of the cache.
func (m *mover) ask(l loop, v reg.GPVirtual, p *part) {
	if p == nil && l.disp%16 == 0 {
		m.asm.PREFETCHT1(l.of(v, moveAhead))
	}
}
