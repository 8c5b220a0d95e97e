//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package strata

import (
	"math/bits"

	"fspda/internal/rng"
)

const maxCall = 4096 // coordinates per call, so that a call takes microseconds and does not delay preemption

// fillFast draws from whole groups of blocks and stops at a group with a rejected draw. It returns
// the number of coordinates and the beginning of the next block.
func (c *cursor) fillFast(dst []uint32, begin uint32, s *rng.Stream) (n int, next uint32) {
	if !useAssembly {
		return 0, begin
	}
	for {
		groups := min(len(dst)-n, maxCall) / groupSize
		if groups == 0 {
			return n, begin
		}
		state := c.start(begin, *s)
		done := drawAsm(&dst[n], groups, &state)
		drawn := done * groupSize
		begin = uint32(uint64(begin) + c.advance(drawn))
		s.Skip(uint64(drawn / 2))
		n += drawn
		if done < groups {
			return n, begin
		}
	}
}

// group returns the increments of the rest and of the beginning for a group of blocks.
func (c *cursor) group() (part, step uint64) {
	carry, low := bits.Mul64(c.part, groupSize)
	return low, groupSize*uint64(c.short) + carry
}

// advance moves n blocks on and returns their total length.
func (c *cursor) advance(n int) (length uint64) {
	high, low := bits.Mul64(c.part, uint64(n))
	rest, over := bits.Add64(c.rest, low, 0)
	c.rest = rest
	return uint64(n)*uint64(c.short) + high + over
}
