package dist

import (
	"sync"

	"fspda/device"
	"fspda/internal/rng"
)

// randK selects exactly k coordinates, uniform among all subsets of size k.
type randK struct {
	maskBase
	scratch *sync.Pool // A pool of *bitmap, each with d bits that are 0.
}

func newRandK(b maskBase) randK { return randK{b, bitmaps(b.d)} }

func (m randK) Sampling() (s device.Sampling, ok bool) {
	return device.Sampling{Dim: m.d, Count: m.k}, true
}

func (m randK) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	b := m.scratch.Get().(*bitmap)
	drawSubset(dst, m.d, 0, b, &s)
	m.scratch.Put(b)
	return dst
}

// perLayer selects max(1, floor(m·(1-c))) coordinates in each tensor of m, where c is the share
// dropped.
type perLayer struct {
	maskBase
	sizes, counts []int
	scratch       *sync.Pool
}

func newPerLayer(b maskBase, sizes []int, density float64) perLayer {
	m := perLayer{maskBase: b, sizes: append([]int(nil), sizes...), counts: make([]int, len(sizes))}
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

// keptInLayer returns max(1, floor(size·(1-c))) with c = 1-density, in float64, rounded at every
// step. 1-0.9 is slightly less than 0.1, so 0.1 of 78400 is 7839, as in the published figures.
func keptInLayer(size int, density float64) int {
	dropped := float64(1 - density)
	return max(1, int(float64(size)*float64(1-dropped)))
}

func (m perLayer) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	b := m.scratch.Get().(*bitmap)
	offset, done := 0, 0
	for l, size := range m.sizes {
		drawSubset(dst[done:done+m.counts[l]], size, uint32(offset), b, &s)
		offset += size
		done += m.counts[l]
	}
	m.scratch.Put(b)
	return dst
}

func bitmaps(d int) *sync.Pool { return &sync.Pool{New: func() any { return newBitmap(d) }} }

// drawSubset fills dst with len(dst) distinct numbers of 0..d-1, uniform among all such subsets,
// ascending, each plus offset. It sets random bits of a bitmap until enough are set; if that is
// more than half of them, it draws the complement. The bitmap has at least d bits, all 0 before and
// after.
func drawSubset(dst []uint32, d int, offset uint32, b *bitmap, s *rng.Stream) {
	words := b.words[:(d+63)/64]
	throw := subsetSampler{b, uint64(d), -uint32(d) % uint32(d), len(dst) < d/markBelow}
	switch {
	case 2*len(dst) > d:
		throw.drawUntil(d-len(dst), s)
		complement(words, d)
		drainBits(dst, offset, words)
	case throw.mark:
		throw.drawUntil(len(dst), s)
		b.drainMarked(dst, offset, words)
	default:
		throw.drawUntil(len(dst), s)
		drainBits(dst, offset, words)
	}
}

// markBelow is the inverse of the density below which marking words is faster.
const markBelow = 80

// subsetSampler sets random bits 0..d-1. A draw is the upper half of the product of 32 random bits
// with d. It is uniform if the 2^32 mod d products whose lower half is below least are rejected
// (Lemire: Fast random integer generation in an interval, 2019).
type subsetSampler struct {
	b     *bitmap
	d     uint64
	least uint32
	mark  bool // marks words
}

// drawUntil draws until n more bits are set. Each 64-bit random number gives two draws, the lower
// half first; an unused half of the last one is discarded. Two draws set at most two bits, so the
// first n/2 random numbers need no check.
func (t subsetSampler) drawUntil(n int, s *rng.Stream) {
	for n >= 2 {
		if t.mark {
			n -= t.drawMarked(n/2, s)
		} else {
			n -= t.drawPlain(n/2, s)
		}
	}
	for n == 1 {
		u := s.Uint64()
		for half := 0; half < 2 && n == 1; half++ {
			if product := uint64(uint32(u)) * t.d; uint32(product) >= t.least {
				n -= t.set(product >> 32)
			}
			u >>= 32
		}
	}
}

func (t subsetSampler) set(c uint64) int {
	if t.mark {
		return t.b.setMarked(c)
	}
	return setBit(t.b.words, c)
}

// drawPlain makes two draws from each of the given number of random numbers, and returns the number
// of new bits.
// The count is a sum without unpredictable branches.
func (t subsetSampler) drawPlain(draws int, s *rng.Stream) int {
	words, local, fresh := t.b.words, *s, 0
	for range draws {
		u := local.Uint64()
		if product := uint64(uint32(u)) * t.d; uint32(product) >= t.least {
			fresh += setBit(words, product>>32)
		}
		if product := u >> 32 * t.d; uint32(product) >= t.least {
			fresh += setBit(words, product>>32)
		}
	}
	*s = local
	return fresh
}

// drawMarked is drawPlain that also marks the words.
func (t subsetSampler) drawMarked(draws int, s *rng.Stream) int {
	local, fresh := *s, 0
	for range draws {
		u := local.Uint64()
		if product := uint64(uint32(u)) * t.d; uint32(product) >= t.least {
			fresh += t.b.setMarked(product >> 32)
		}
		if product := u >> 32 * t.d; uint32(product) >= t.least {
			fresh += t.b.setMarked(product >> 32)
		}
	}
	*s = local
	return fresh
}
