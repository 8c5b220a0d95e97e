package dist

import (
	"math/bits"
	"sync"

	"fspda/internal/rng"
)

// randK: exactly k coordinates, uniform among all sets of k.
type randK struct {
	basis
	scratch *sync.Pool // of *[]uint64, a bitmap of d bits, all 0
}

func newRandK(b basis) randK { return randK{b, bitmaps(b.d)} }

func (m randK) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	bitmap := m.scratch.Get().(*[]uint64)
	drawSubset(dst, m.d, 0, *bitmap, &s)
	m.scratch.Put(bitmap)
	return dst
}

// perLayer: in each tensor of m coordinates max(1, floor(m·(1-c))), c the share that is dropped.
type perLayer struct {
	basis
	sizes, counts []int
	scratch       *sync.Pool
}

func newPerLayer(b basis, sizes []int, density float64) perLayer {
	m := perLayer{basis: b, sizes: append([]int(nil), sizes...), counts: make([]int, len(sizes))}
	m.k = 0
	largest := 0
	for l, size := range sizes {
		m.counts[l] = keptInLayer(size, density)
		m.k += m.counts[l]
		largest = max(largest, size)
	}
	m.scratch = bitmaps(largest)
	return m
}

// keptInLayer evaluates max(1, floor(size·(1-c))) with c = 1-density, all in float64 and rounded at every step: 1-0.9 is a little less than
// 0.1, so 0.1 of 78400 is 7839, as in the published figures.
func keptInLayer(size int, density float64) int {
	dropped := float64(1 - density)
	return max(1, int(float64(size)*float64(1-dropped)))
}

func (m perLayer) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	bitmap := m.scratch.Get().(*[]uint64)
	offset, done := 0, 0
	for l, size := range m.sizes {
		drawSubset(dst[done:done+m.counts[l]], size, uint32(offset), *bitmap, &s)
		offset += size
		done += m.counts[l]
	}
	m.scratch.Put(bitmap)
	return dst
}

func bitmaps(d int) *sync.Pool {
	return &sync.Pool{New: func() any { b := make([]uint64, (d+63)/64); return &b }}
}

// drawSubset fills dst with len(dst) different numbers of 0..d-1, uniform among all such sets, ascending, each plus offset. It
// throws at a bitmap until enough different bits are set; where that is more than half of them it throws for those to leave out. The
// bitmap has at least d bits, 0 before and after.
func drawSubset(dst []uint32, d int, offset uint32, bitmap []uint64, s *rng.Stream) {
	bitmap = bitmap[:(d+63)/64]
	var flip uint64
	throws := len(dst)
	if 2*throws > d {
		throws = d - throws
		flip = ^uint64(0)
	}
	throwBits(bitmap, throws, uint32(d), s)
	if flip != 0 && d%64 != 0 {
		bitmap[len(bitmap)-1] |= flip << (d % 64) // beyond the end: leave out
	}
	n := 0
	for w, word := range bitmap {
		bitmap[w] = 0
		base := offset + uint32(w)*64
		for word ^= flip; word != 0; word &= word - 1 {
			dst[n] = base + uint32(bits.TrailingZeros64(word))
			n++
		}
	}
}

// throwBits sets n different uniform bits among the first d of an empty bitmap. Each 64-bit draw serves for two throws.
func throwBits(bitmap []uint64, n int, d uint32, s *rng.Stream) {
	least := -d % d // 2^32 mod d: products with a lower half below it are one too many (Lemire 2019)
	local := *s
	for n > 0 {
		u := local.Uint64()
		for half := 0; half < 2 && n > 0; half++ {
			product := uint64(uint32(u)) * uint64(d)
			u >>= 32
			if uint32(product) < least {
				continue
			}
			c := product >> 32
			bit := uint64(1) << (c & 63)
			if old := bitmap[c>>6]; old&bit == 0 {
				bitmap[c>>6] = old | bit
				n--
			}
		}
	}
	*s = local
}
