// Package strata draws coordinates of a vector, one from each of blocks of nearly equal length.
package strata

import (
	"math/bits"

	"fspda/internal/rng"
)

// Draw divides d coordinates into len(dst) = k blocks of nearly equal length and draws one from each:
// exactly k, in ascending order. d is below 2^32.
//
// If k divides d, all blocks have length d/k and every coordinate has the probability k/d.
// Otherwise a coordinate in a shorter block would be more likely. Therefore all block boundaries
// are shifted cyclically by a uniform offset: a block of length L covers a given coordinate with
// probability L/d and draws it with 1/L, and the sum over all blocks is k/d.
func Draw(dst []uint32, d int, s *rng.Stream) {
	k := len(dst)
	if d%k != 0 {
		drawRotated(dst, d, k, s)
		return
	}
	cuts := newCursor(d, k)
	cuts.fill(dst, 0, s)
}

// drawRotated draws with the block boundaries shifted by an offset o: block b begins at (o +
// floor(b·d/k)) mod d. In ascending order, the blocks that wrapped around come first, then the
// others. The block that straddles the end gives the first or the last coordinate.
func drawRotated(dst []uint32, d, k int, s *rng.Stream) {
	offset := s.IntN(d)
	cuts := newCursor(d, k)
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

// cursor iterates over the blocks. Block b begins at floor(b·d/k) = b·short +
// floor(b·part/2^64), where part is d mod k in units of k/2^64, rounded up. The formula is exact: b
// times the rounding error is below the 1/k by which a quotient misses the next integer, since b <
// k < 2^32.
type cursor struct {
	short uint32 // floor(d/k): each block has this length or one more
	part  uint64
	rest  uint64 // b·part mod 2^64 at block b; if the addition overflows, the block has one more
}

func newCursor(d, k int) cursor {
	c := cursor{short: uint32(d / k)}
	if extra := uint64(d % k); extra != 0 {
		quotient, _ := bits.Div64(extra, 0, uint64(k))
		c.part = quotient + 1
	}
	return c
}

// seek goes to block b.
func (c *cursor) seek(b int) { c.rest = uint64(b) * c.part }

// fill draws one coordinate from each of the next len(dst) blocks, the first of which begins at
// begin. Each 64-bit random number gives two draws.
func (c *cursor) fill(dst []uint32, begin uint32, s *rng.Stream) {
	for len(dst) >= groupSize {
		n, next := c.fillFast(dst, begin, s)
		dst = dst[n:]
		one := min(groupSize, len(dst)) // the group with a rejected draw, or the rest
		begin = c.fillSlow(dst[:one], next, s)
		dst = dst[one:]
	}
	c.fillSlow(dst, begin, s)
}

// fillSlow is fill one block at a time; it returns the beginning of the next block.
func (c *cursor) fillSlow(dst []uint32, begin uint32, s *rng.Stream) (next uint32) {
	local, rest, short, part := *s, c.rest, uint64(c.short), c.part
	for ; len(dst) >= 2; dst = dst[2:] {
		u := local.Uint64()
		var over uint64
		rest, over = bits.Add64(rest, part, 0) // no branch: which blocks are longer is unpredictable
		length := short + over
		product := uint64(uint32(u)) * length
		if uint32(product) < uint32(length) { // rare
			product, local = redraw(product, uint32(length), local)
		}
		dst[0] = begin + uint32(product>>32)
		begin += uint32(length)

		rest, over = bits.Add64(rest, part, 0)
		length = short + over
		product = u >> 32 * length
		if uint32(product) < uint32(length) {
			product, local = redraw(product, uint32(length), local)
		}
		dst[1] = begin + uint32(product>>32)
		begin += uint32(length)
	}
	if len(dst) == 1 {
		u := local.Uint64()
		sum, over := bits.Add64(rest, part, 0)
		rest = sum
		length := uint32(short + over)
		product, after := redraw(uint64(uint32(u))*uint64(length), length, local)
		local = after
		dst[0] = begin + uint32(product>>32)
		begin += length
	}
	*s, c.rest = local, rest
	return begin
}

// redraw repeats the draw of a number uniform in 0..n-1, the upper half of the product, until the
// product is not one of the 2^32 mod n to be rejected (Lemire: Fast random integer generation in an
// interval, 2019).
//
//go:noinline
func redraw(product uint64, n uint32, s rng.Stream) (uint64, rng.Stream) {
	for least := -n % n; uint32(product) < least; {
		product = uint64(uint32(s.Uint64())) * uint64(n)
	}
	return product, s
}
