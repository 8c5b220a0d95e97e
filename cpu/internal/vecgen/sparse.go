package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gather writes the reading of selected coordinates. Indices are signed for the processor: all must be below 2^31.
func gather(e *emitter) {
	e.begin("gather", "func(dst, src *float32, at *uint32, n int)", "writes dst[j] = src[at[j]], all at[j] below 2^31.")
	dst, src, at := e.argument("dst"), e.argument("src"), e.argument("at")
	e.pass("pass", e.start(), e.argument("n"), e.lanes, 2, each(func(l loop, p *part) {
		e.store(e.pick(src, e.load(l.of(at, 0), p), p), l.of(dst, 0), p)
	}))
	e.end()
}

// pick gathers the elements of base at the indices. It leaves nothing undefined where a part is wanted: zeros.
func (e *emitter) pick(base reg.GPVirtual, index reg.VecVirtual, p *part) reg.VecVirtual {
	v := e.zero() // also ends the wait for what the register held before
	m := operand.Mem{Base: base, Index: index, Scale: 4}
	if e.isAVX512 {
		k := e.K()
		if p == nil {
			e.KXNORW(k, k, k)
		} else {
			e.KMOVW(p.mask, k)
		}
		e.VGATHERDPS(m, k, v)
		return v
	}
	mask := e.YMM()
	if p == nil {
		e.VPCMPEQD(mask, mask, mask)
	} else {
		e.VMOVUPS(operand.Mem{Base: p.window}, mask)
	}
	e.VGATHERDPS(mask, m, v)
	return v
}

// addDiffAt writes the update of selected coordinates of one vector, for processors that can scatter.
func addDiffAt(e *emitter) {
	if !e.isAVX512 {
		return
	}
	e.begin("addDiffAt1", "func(v *float32, at *uint32, p, q *float32, n int, a float32)",
		"writes v[at[j]] += a·(p[j]-q[j]), all at[j] below 2^31 and no two alike.")
	v, at, p, q := e.argument("v"), e.argument("at"), e.argument("p"), e.argument("q")
	a := e.broadcast("a")
	e.pass("pass", e.start(), e.argument("n"), e.lanes, 1, each(func(l loop, some *part) {
		index := e.load(l.of(at, 0), some)
		d := e.difference(e.load(l.of(p, 0), some), e.load(l.of(q, 0), some))
		e.scatter(e.plusTimes(e.pick(v, index, some), a, d), v, index, some)
	}))
	e.end()
}

func (e *emitter) scatter(x reg.VecVirtual, base reg.GPVirtual, index reg.VecVirtual, p *part) {
	k := e.K()
	if p == nil {
		e.KXNORW(k, k, k)
	} else {
		e.KMOVW(p.mask, k)
	}
	e.VSCATTERDPS(x, k, operand.Mem{Base: base, Index: index, Scale: 4})
}
