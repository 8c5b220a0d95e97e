package dist

import (
	"math"
	"math/bits"

	"fspda/internal/rng"
)

// gaps draws how many coordinates to skip until the next one that is taken, where each is taken with probability p: geometric
// numbers, by integer arithmetic alone, so that every machine draws the same. A uniform 64-bit u skips at least g coordinates when
// u < survival[g] = (1-p)^g · 2^64.
type gaps struct {
	survival []uint64 // survival[g] for g = 1..longest, at g; survival[0] stands for 2^64 and is not read
	guide    []uint32 // guide[u>>guideShift]: the shortest gap of any u in that bucket, where the search begins
	end      int      // no caller looks beyond
}

const (
	guideShift = 54   // 1024 buckets
	maxTable   = 4096 // entries: 32 KiB. A longer gap takes another draw.
)

// newGaps prepares gaps of probability p in (0,1]. Sums of gaps up to n are told apart; n or more is just "none left".
func newGaps(p float64, n int) *gaps {
	if p >= 1 {
		return &gaps{end: n}
	}
	longest := int(min(math.Ceil(4/p), maxTable))
	stay := -uint64(max(math.Ldexp(p, 64), 1)) // (1-p) · 2^64
	g := &gaps{survival: make([]uint64, longest+1), guide: make([]uint32, 1<<(64-guideShift)), end: n}
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
		g.guide[b] = k
	}
	return g
}

// next returns a gap; anything from end on means that no coordinate is left.
func (g *gaps) next(s *rng.Stream) int {
	if g.survival == nil {
		return 0
	}
	skipped := 0
	for skipped < g.end {
		u := s.Uint64()
		k := int(g.guide[u>>guideShift])
		for k+1 < len(g.survival) && u < g.survival[k+1] {
			k++
		}
		skipped += k
		if k+1 < len(g.survival) {
			break
		}
		// The gap is at least as long as the table. What remains of it has the same law, from there on.
	}
	return skipped
}
