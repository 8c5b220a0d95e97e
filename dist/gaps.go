package dist

import (
	"math"
	"math/bits"

	"fspda/internal/rng"
)

// gapSampler draws the number of coordinates to skip before the next one that is taken, where each
// is taken with probability p. This number is geometric. Integer arithmetic makes it the same on
// every machine: a uniform 64-bit u skips at least g coordinates when u < survival[g] = (1-p)^g ·
// 2^64.
type gapSampler struct {
	longest int
	// survival[g] for g = 1..longest, and a 0 at the end; survival[0] stands for 2^64 and is not
	// read
	survival []uint64
	// guide[u>>guideShift]: the shortest gap of any u in that bucket, where the search starts
	guide *[1 << (64 - guideShift)]uint16
	end   int // gaps beyond end are not distinguished
}

const (
	guideShift = 52   // 4096 buckets: 8 KiB
	maxTable   = 4096 // entries: 32 KiB. Longer gaps take another draw.
)

// newGaps returns a sampler of probability p in (0,1]. Sums of gaps are exact up to n; n or more
// means that no coordinate is left.
func newGaps(p float64, n int) *gapSampler {
	if p >= 1 {
		return &gapSampler{end: n}
	}
	longest := int(min(math.Ceil(4/p), maxTable))
	stay := -uint64(max(math.Ldexp(p, 64), 1)) // (1-p) · 2^64
	g := &gapSampler{longest: longest, survival: make([]uint64, longest+2), guide: new([1 << (64 - guideShift)]uint16),
		end: n}
	g.survival[1] = stay
	for k := 2; k <= longest; k++ {
		g.survival[k], _ = bits.Mul64(g.survival[k-1], stay)
	}
	k := uint32(0)
	for b := len(g.guide) - 1; b >= 0; b-- { // downwards: smaller draws have longer gaps
		largest := uint64(b)<<guideShift | (1<<guideShift - 1)
		for int(k) < longest && largest < g.survival[k+1] {
			k++
		}
		g.guide[b] = uint16(k)
	}
	return g
}

// next returns a gap; a value >= end means that no coordinate is left.
func (g *gapSampler) next(s *rng.Stream) int {
	if g.survival == nil {
		return 0
	}
	skipped := 0
	for skipped < g.end {
		k := g.gap(s.Uint64())
		skipped += k
		if k < g.longest {
			break
		}
		// The gap is at least as long as the table. The geometric distribution is memoryless: the
		// rest has the same distribution.
	}
	return skipped
}

// gap returns the gap of a draw u, at most longest. Most buckets contain at most one bound; the
// comparison with it is added instead of branched on, since it is unpredictable.
func (g *gapSampler) gap(u uint64) int {
	k := int(g.guide[u>>guideShift])
	_, below := bits.Sub64(u, g.survival[k+1], 0)
	k += int(below)
	for u < g.survival[k+1] {
		k++
	}
	return k
}

// fill writes the coordinates that are taken, from c on, ascending, until dst is full or none is
// left. It returns their number and the coordinate from which to continue. With a full dst, next
// depends only on draws that were used.
func (g *gapSampler) fill(dst []uint32, c int, s *rng.Stream) (n, next int) {
	if g.survival == nil {
		for ; n < len(dst) && c < g.end; n++ {
			dst[n] = uint32(c)
			c++
		}
		return n, c
	}
	local := *s
	for n < len(dst) && c < g.end {
		k := g.gap(local.Uint64())
		if c += k; k == g.longest {
			continue
		}
		if c >= g.end {
			break
		}
		dst[n] = uint32(c)
		c++
		n++
	}
	*s = local
	return n, c
}
