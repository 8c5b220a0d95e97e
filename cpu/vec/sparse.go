package vec

import (
	"fspda/cpu/isa"
	"fspda/device"
)

// diffBlock is how many differences are held at a time if there are more than two terms: 1 KB.
const diffBlock = 256

// gatherAtGo writes src[at[j]] to dst[j].
func gatherAtGo(dst, src []float32, at []uint32) {
	dst = dst[:len(at)]
	for j, i := range at {
		dst[j] = src[i]
	}
}

// adjacent says whether coordinates, which ascend, are enough and without gaps between them, so that
// operations on ranges are faster.
func adjacent(at []uint32) bool {
	n := len(at)
	return n >= 64 && int(at[n-1]-at[0]) == n-1
}

// addDiffAll computes a part of an AddDiff of all coordinates.
func addDiffAll(op *device.Op, from, to int) {
	p, q := numbers(op.In[0])[from:to], numbers(op.In[1])[from:to]
	v := func(k int) []float32 { return numbers(op.To[k].V)[from:to] }
	a := func(k int) float32 { return float32(op.To[k].A) }
	switch len(op.To) {
	case 0:
	case 1:
		addDiffAll1(p, q, a(0), v(0))
	case 2:
		addDiffAll2(p, q, a(0), v(0), a(1), v(1))
	default:
		eachDiff(p, q, func(j int, d []float32) {
			for k := range op.To {
				plusTimes(v(k)[j:j+len(d)], a(k), d)
			}
		})
	}
}

// addDiffAt computes an AddDiff of selected coordinates.
func addDiffAt(op *device.Op) {
	p, q, at := numbers(op.In[0]), numbers(op.In[1]), coordinates(op.Idx)
	v := func(k int) []float32 { return numbers(op.To[k].V) }
	a := func(k int) float32 { return float32(op.To[k].A) }
	switch {
	case len(op.To) == 0 || len(p) == 0:
	case len(op.To) == 1:
		addDiffAt1(p, q, at, a(0), v(0))
	case len(op.To) == 2:
		addDiffAt2(p, q, at, a(0), v(0), a(1), v(1))
	default:
		eachDiff(p, q, func(j int, d []float32) {
			for k := range op.To {
				scatterAdd(v(k), at[j:], len(d), d, a(k))
			}
		})
	}
}

// eachDiff passes blocks of p - q, from number j on, to add. It computes all differences of a block
// before add changes a vector, since p may be one that is added to.
func eachDiff(p, q []float32, add func(j int, d []float32)) {
	var block [diffBlock]float32
	for j := 0; j < len(p); j += diffBlock {
		d := block[:min(diffBlock, len(p)-j)]
		for l := range d {
			d[l] = p[j+l] - q[j+l]
		}
		add(j, d)
	}
}

// addDiffAll1Go: v += a·(p - q).
func addDiffAll1Go(p, q []float32, a float32, v []float32) {
	q, v = q[:len(p)], v[:len(p)]
	for j := range p {
		v[j] += float32(a * (p[j] - q[j]))
	}
}

// addDiffAll2Go: v += a·(p - q), w += b·(p - q).
func addDiffAll2Go(p, q []float32, a float32, v []float32, b float32, w []float32) {
	q, v, w = q[:len(p)], v[:len(p)], w[:len(p)]
	for j := range p {
		d := p[j] - q[j]
		v[j] += float32(a * d)
		w[j] += float32(b * d)
	}
}

// addDiffAt1Go: v[at] += a·(p - q).
func addDiffAt1Go(p, q []float32, at []uint32, a float32, v []float32) {
	p, q = p[:len(at)], q[:len(at)]
	for j, i := range at {
		v[i] += float32(a * (p[j] - q[j]))
	}
}

// addDiffAt2Go: v[at] += a·(p - q), w[at] += b·(p - q).
func addDiffAt2Go(p, q []float32, at []uint32, a float32, v []float32, b float32, w []float32) {
	p, q, w = p[:len(at)], q[:len(at)], w[:len(v)]
	for j, i := range at {
		d := p[j] - q[j]
		v[i] += float32(a * d)
		w[i] += float32(b * d)
	}
}

// Selected coordinates of a vector in a cache are gathered sixteen at a time. Beyond the caches
// latency dominates: there a scalar loop that prefetches coordinates is up to three times faster
// than vector instructions. Scatter instructions have no advantage: they store one number after the
// other.
const (
	beyondCache    = 1 << 18 // length of a vector that exceeds the second-level cache
	densePrefetch  = 64      // coordinates
	sparseFrom     = 32      // numbers from one coordinate to the next: two cache lines
	sparsePrefetch = 128     // coordinates
)

// isSparse reports whether most cache lines of v hold none of the coordinates.
func isSparse(v []float32, at []uint32) bool { return len(v) >= sparseFrom*len(at) }

func gatherAt(dst, src []float32, at []uint32) {
	dst = dst[:len(at)]
	switch {
	case adjacent(at):
		copy(dst, src[at[0]:])
		return
	case len(src) >= beyondCache && isa.Assembly():
		gather, ahead := gatherDenseAsm, densePrefetch
		if isSparse(src, at) {
			gather, ahead = gatherSparseAsm, sparsePrefetch
		}
		eachBlock(at, ahead, func(j, n int, next *uint32) { gather(&dst[j], pointer(src), &at[j], next, n) })
		rest := len(at) &^ 3
		gatherAtGo(dst[rest:], src, at[rest:])
		return
	case !isa.Assembly():
		gatherAtGo(dst, src, at)
		return
	}
	for len(at) > 0 {
		n := min(vecBlock, len(at))
		gatherAsm(pointer(dst), pointer(src), &at[0], n)
		dst, at = dst[n:], at[n:]
	}
}

func addDiffAt1(p, q []float32, at []uint32, a float32, v []float32) {
	p, q = p[:len(at)], q[:len(at)]
	rest := 0
	if len(v) >= beyondCache && isa.Assembly() {
		add, ahead := addDiffDense1Asm, densePrefetch
		if isSparse(v, at) {
			add, ahead = addDiffSparse1Asm, sparsePrefetch
		}
		eachBlock(at, ahead, func(j, n int, next *uint32) { add(pointer(v), &at[j], next, &p[j], &q[j], n, a) })
		rest = len(at) &^ 3
	}
	addDiffAt1Go(p[rest:], q[rest:], at[rest:], a, v)
}

func addDiffAt2(p, q []float32, at []uint32, a float32, v []float32, b float32, w []float32) {
	p, q, w = p[:len(at)], q[:len(at)], w[:len(v)]
	rest := 0
	if len(v) >= beyondCache && isa.Assembly() {
		add, ahead := addDiffDense2Asm, densePrefetch
		if isSparse(v, at) {
			add, ahead = addDiffSparse2Asm, sparsePrefetch
		}
		eachBlock(at, ahead, func(j, n int, next *uint32) {
			add(pointer(v), pointer(w), &at[j], next, &p[j], &q[j], n, a, b)
		})
		rest = len(at) &^ 3
	}
	addDiffAt2Go(p[rest:], q[rest:], at[rest:], a, v, b, w)
}

// scatterAdd is scatterAddGo. It also prefetches coordinates beyond the n-th, where the caller goes
// on.
func scatterAdd(v []float32, at []uint32, n int, p []float32, a float32) {
	p, whole := p[:n], 0
	if isa.Assembly() {
		whole = n &^ 3
	}
	for j := 0; j < whole; {
		m, next := min(vecBlock, whole-j, len(at)-j-densePrefetch), j+densePrefetch
		if m &^= 3; m <= 0 { // nothing to prefetch for the last ones
			m, next = min(vecBlock, whole-j), j
		}
		scatterAddAsm(pointer(v), &at[j], &at[next], &p[j], m, a)
		j += m
	}
	scatterAddGo(v, at[whole:], n-whole, p[whole:], a)
}

// eachBlock divides the coordinates, except a rest that is not a multiple of four, into blocks for
// one call of assembly, and passes run the coordinates to prefetch during each.
func eachBlock(at []uint32, ahead int, run func(j, n int, next *uint32)) {
	whole := len(at) &^ 3
	for j := 0; j < whole; {
		n, next := min(vecBlock, whole-j-ahead), j+ahead
		if n <= 0 { // nothing to prefetch for the last ones
			n, next = whole-j, j
		}
		run(j, n, &at[next])
		j += n
	}
}
