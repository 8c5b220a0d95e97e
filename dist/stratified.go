package dist

import "fspda/internal/rng"

// stratified: the vector is cut into k blocks of nearly equal length, and one coordinate of each is drawn: exactly k, and
// ascending as they come.
//
// Where k divides d, all blocks have length d/k and every coordinate has the probability k/d. Where it does not, a coordinate in
// a shorter block would come more often; so the vector is joined to a ring and all cuts are turned by a uniform offset. Block b
// of length L then covers a given coordinate with probability L/d and picks it from there with 1/L, which sums to k/d.
type stratified struct{ basis }

func (m stratified) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	if m.d%m.k == 0 {
		cuts := newCutter(m.d, m.k)
		cuts.fill(dst, 0, &s)
		return dst
	}
	drawTurned(dst, m.d, m.k, &s)
	return dst
}

// drawTurned draws with the cuts turned by an offset o: block b begins at (o + floor(b·d/k)) mod d. In ascending order come first the
// blocks that have passed the end of the ring, then those that have not; the one that straddles the end gives the first or the
// last coordinate.
func drawTurned(dst []uint32, d, k int, s *rng.Stream) {
	offset := s.IntN(d)
	cuts := newCutter(d, k)
	begin := func(b int) int { return offset + int(uint64(b)*uint64(d)/uint64(k)) }
	passed := 0 // the first block that begins at or beyond the end, or k
	for lo, hi := 0, k; lo < hi; passed = lo {
		if mid := (lo + hi) / 2; begin(mid) >= d {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	straddler := begin(passed-1) + s.IntN(begin(passed)-begin(passed-1))
	if straddler >= d {
		dst[0] = uint32(straddler - d)
		dst = dst[1:]
	} else {
		dst[k-1] = uint32(straddler)
	}
	cuts.seek(passed)
	cuts.fill(dst[:k-passed], uint32(begin(passed)-d), s)
	cuts.seek(0)
	cuts.fill(dst[k-passed:k-1], uint32(offset), s)
}

// cutter walks along the blocks.
type cutter struct {
	d, k  int64
	extra int64  // d mod k: as many blocks are longer
	short uint32 // floor(d/k): each block has this length or one more
	rest  int64  // (b·d) mod k at block b
}

func newCutter(d, k int) cutter {
	return cutter{d: int64(d), k: int64(k), extra: int64(d % k), short: uint32(d / k)}
}

// seek goes to block b.
func (c *cutter) seek(b int) { c.rest = int64(b) * c.d % c.k }

// fill draws one coordinate in each of the next len(dst) blocks, the first of which begins at begin. Each 64-bit draw serves for two.
func (c *cutter) fill(dst []uint32, begin uint32, s *rng.Stream) {
	local, rest := *s, c.rest
	var bits uint64
	for n := range dst {
		// No branch: which blocks are longer looks random to a processor.
		over := rest + c.extra - c.k // not negative where the block is longer
		short := over >> 63          // -1 or 0
		length := c.short + 1 + uint32(short)
		rest = over + c.k&short

		if n&1 == 0 {
			bits = local.Uint64()
		}
		product := uint64(uint32(bits)) * uint64(length)
		bits >>= 32
		if uint32(product) < length { // rare
			product, local = redraw(product, length, local)
		}
		dst[n] = begin + uint32(product>>32)
		begin += length
	}
	*s, c.rest = local, rest
}

// redraw repeats the draw of a number uniform in 0..n-1, the upper half of the product, while it is one of the 2^32 mod n that would
// make some numbers one too frequent (Lemire: Fast random integer generation in an interval, 2019).
//
//go:noinline
func redraw(product uint64, n uint32, s rng.Stream) (uint64, rng.Stream) {
	for least := -n % n; uint32(product) < least; {
		product = uint64(uint32(s.Uint64())) * uint64(n)
	}
	return product, s
}
