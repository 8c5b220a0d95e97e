package dist

import (
	"sync"

	"fspda/internal/rng"
)

// randK: exactly k coordinates, uniform among all sets of k.
type randK struct {
	maskBase
	scratch *sync.Pool // of *bitmap of d bits, all 0
}

func newRandK(b maskBase) randK { return randK{b, bitmaps(b.d)} }

func (m randK) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	b := m.scratch.Get().(*bitmap)
	drawSubset(dst, m.d, 0, b, &s)
	m.scratch.Put(b)
	return dst
}

// perLayer: in each tensor of m coordinates max(1, floor(m·(1-c))), c the share that is dropped.
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

// keptInLayer evaluates max(1, floor(size·(1-c))) with c = 1-density, all in float64 and rounded at
// every step: 1-0.9 is a little less than 0.1, so 0.1 of 78400 is 7839, as in the published
// figures.
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

// drawSubset fills dst with len(dst) different numbers of 0..d-1, uniform among all such sets,
// ascending, each plus offset. It throws at a bitmap until enough different bits are set; where
// that is more than half of them it throws for those to leave out. The bitmap has at least d bits,
// 0 before and after.
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

// markBelow is the inverse of the density below which it pays to mark words.
const markBelow = 80

// thrower throws at the numbers 0..d-1. The upper half of a product of 32 random bits with d is
// uniform but for the 2^32 mod d products whose lower half is below least, which do not count
// (Lemire: Fast random integer generation in an interval, 2019).
type subsetSampler struct {
	b     *bitmap
	d     uint64
	least uint32
	mark  bool // marks words
}

// until throws until n more bits are set. Each 64-bit draw serves for two throws, the lower half
// first; what the last draw has left is dropped. Two throws set at most two bits, so that n/2 draws
// need not ask how many are missing.
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

// plain throws twice for each of so many draws, and returns how many bits are new: a number to add,
// not a branch to guess.
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

// marked is plain that also marks the words.
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
