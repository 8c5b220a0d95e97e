//go:build !noasm && !fspda_noasm

package vec

import "fspda/cpu/isa"

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

// gatherAt is gatherAtGo.
func gatherAt(dst, src []float32, at []uint32) {
	dst = dst[:len(at)]
	switch {
	case len(src) >= beyondCache && isa.Active != isa.Go:
		gather, ahead := gatherDenseAVX2, densePrefetch
		if isSparse(src, at) {
			gather, ahead = gatherSparseAVX2, sparsePrefetch
		}
		eachBlock(at, ahead, func(j, n int, next *uint32) { gather(&dst[j], pointer(src), &at[j], next, n) })
		rest := len(at) &^ 3
		gatherAtGo(dst[rest:], src, at[rest:])
		return
	case isa.Active == isa.Go:
		gatherAtGo(dst, src, at)
		return
	}
	for len(at) > 0 {
		n := min(vecBlock, len(at))
		if isa.Active == isa.AVX512 {
			gatherAVX512(pointer(dst), pointer(src), &at[0], n)
		} else {
			gatherAVX2(pointer(dst), pointer(src), &at[0], n)
		}
		dst, at = dst[n:], at[n:]
	}
}

// addDiffAt1 is addDiffAt1Go.
func addDiffAt1(p, q []float32, at []uint32, a float32, v []float32) {
	p, q = p[:len(at)], q[:len(at)]
	rest := 0
	if len(v) >= beyondCache && isa.Active != isa.Go {
		add, ahead := addDiffDense1AVX2, densePrefetch
		if isSparse(v, at) {
			add, ahead = addDiffSparse1AVX2, sparsePrefetch
		}
		eachBlock(at, ahead, func(j, n int, next *uint32) { add(pointer(v), &at[j], next, &p[j], &q[j], n, a) })
		rest = len(at) &^ 3
	}
	addDiffAt1Go(p[rest:], q[rest:], at[rest:], a, v)
}

// addDiffAt2 is addDiffAt2Go.
func addDiffAt2(p, q []float32, at []uint32, a float32, v []float32, b float32, w []float32) {
	p, q, w = p[:len(at)], q[:len(at)], w[:len(v)]
	rest := 0
	if len(v) >= beyondCache && isa.Active != isa.Go {
		add, ahead := addDiffDense2AVX2, densePrefetch
		if isSparse(v, at) {
			add, ahead = addDiffSparse2AVX2, sparsePrefetch
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
	if isa.Active != isa.Go {
		whole = n &^ 3
	}
	for j := 0; j < whole; {
		m, next := min(vecBlock, whole-j, len(at)-j-densePrefetch), j+densePrefetch
		if m &^= 3; m <= 0 { // nothing to prefetch for the last ones
			m, next = min(vecBlock, whole-j), j
		}
		scatterAddAVX2(pointer(v), &at[j], &at[next], &p[j], m, a)
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
