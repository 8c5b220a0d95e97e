package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gather writes the gathering of selected coordinates in vectors, which is best if the data lie in
// a cache. The processor takes indices as signed numbers.
func gather(e *emitter) {
	e.begin("gather", "func(dst, src *float32, at *uint32, n int)", "writes dst[j] = src[at[j]], all at[j] below 2^31.")
	dst, src, at := e.argument("dst"), e.argument("src"), e.argument("at")
	e.pass("pass", e.start(), e.argument("n"), e.lanes, 2, each(func(l loop, p *part) {
		e.store(e.pick(src, e.load(l.of(at, 0), p), p), l.of(dst, 0), p)
	}))
	e.end()
}

// pick gathers the elements of base at the indices; elements outside of the part are zero.
func (e *emitter) pick(base reg.GPVirtual, index reg.VecVirtual, p *part) reg.VecVirtual {
	v := e.zero() // also removes the dependency on the old contents of the register
	m := operand.Mem{Base: base, Index: index, Scale: 4}
	if e.isAVX512 {
		k := e.asm.K()
		if p == nil {
			e.asm.KXNORW(k, k, k)
		} else {
			e.asm.KMOVW(p.mask, k)
		}
		e.asm.VGATHERDPS(m, k, v)
		return v
	}
	mask := e.asm.YMM()
	if p == nil {
		e.asm.VPCMPEQD(mask, mask, mask)
	} else {
		e.asm.VMOVUPS(operand.Mem{Base: p.window}, mask)
	}
	e.asm.VGATHERDPS(mask, m, v)
	return v
}

// The loops below handle one coordinate after the other, and prefetch later ones: the hardware
// prefetcher does not follow sorted coordinates that are some cache lines apart.

// spacing is how far apart coordinates lie, and which cache to prefetch into. If most lines hold a
// coordinate, the hardware prefetcher fetches them, and it is enough to bring them into the
// first-level cache. If few do, each is a cache miss, and the second-level cache can wait for twice
// as many as the first.
type spacing struct {
	name     string
	prefetch func(e *emitter, m operand.Op)
}

var (
	dense  = spacing{"Dense", func(e *emitter, m operand.Op) { e.asm.PREFETCHT0(m) }}
	sparse = spacing{"Sparse", func(e *emitter, m operand.Op) { e.asm.PREFETCHT1(m) }}
)

// selected writes the loops for vectors beyond the caches. They need only AVX.
func selected(e *emitter) {
	if e.isAVX512 {
		return
	}
	const doc = "it prefetches the numbers at the n coordinates of next. n is a multiple of 4."
	for _, r := range []spacing{dense, sparse} {
		e.begin("gather"+r.name, "func(dst, src *float32, at, next *uint32, n int)", "writes dst[j] = src[at[j]]; "+doc)
		dst, src := e.argument("dst"), e.argument("src")
		e.coordinates(r, []reg.GPVirtual{src}, func(j operand.Mem, i reg.GPVirtual) {
			v := e.asm.GP32()
			e.asm.MOVL(operand.Mem{Base: src, Index: i, Scale: 4}, v)
			j.Base = dst
			e.asm.MOVL(v, j)
		})
		e.end()

		e.begin("addDiff"+r.name+"1", "func(v *float32, at, next *uint32, p, q *float32, n int, a float32)",
			"writes v[at[j]] += a·(p[j]-q[j]); "+doc)
		e.addDiffPrefetched(r, "v")
		e.begin("addDiff"+r.name+"2", "func(v, w *float32, at, next *uint32, p, q *float32, n int, a, b float32)",
			"writes v[at[j]] += a·(p[j]-q[j]) and w[at[j]] += b·(p[j]-q[j]); "+doc)
		e.addDiffPrefetched(r, "v", "w")
	}
}

func (e *emitter) addDiffPrefetched(r spacing, names ...string) {
	p, q := e.argument("p"), e.argument("q")
	var to []reg.GPVirtual
	var factors vectors
	for i, name := range names {
		to = append(to, e.argument(name))
		factors = append(factors, e.broadcast([]string{"a", "b"}[i]))
	}
	e.coordinates(r, to, func(j operand.Mem, i reg.GPVirtual) {
		d, x := e.asm.XMM(), e.asm.XMM()
		from, minus := j, j
		from.Base, minus.Base = p, q
		e.asm.VMOVSS(from, d)
		e.asm.VSUBSS(minus, d, d)
		for k, v := range to {
			m := operand.Mem{Base: v, Index: i, Scale: 4}
			e.asm.VMULSS(d, factors[k].AsX(), x)
			e.asm.VADDSS(m, x, x)
			e.asm.VMOVSS(x, m)
		}
	})
	e.end()
}

// coordinates calls body with the operand of number j, without its base, and with the coordinate
// at[j]; and prefetches the vectors at the coordinates of next.
func (e *emitter) coordinates(r spacing, of []reg.GPVirtual, body func(j operand.Mem, i reg.GPVirtual)) {
	const unroll = 4
	at, next, n, j := e.argument("at"), e.argument("next"), e.argument("n"), e.start()
	e.asm.Label("coordinates")
	for u := range unroll {
		place := operand.Mem{Index: j, Scale: 4, Disp: 4 * u}
		later, now := place, place
		later.Base, now.Base = next, at
		i := e.asm.GP64()
		e.asm.MOVL(later, i.As32())
		for _, v := range of {
			r.prefetch(e, operand.Mem{Base: v, Index: i, Scale: 4})
		}
		k := e.asm.GP64()
		e.asm.MOVL(now, k.As32())
		body(place, k)
	}
	e.asm.ADDQ(operand.U8(unroll), j)
	e.asm.CMPQ(j, n)
	e.asm.JLT(operand.LabelRef("coordinates"))
}
