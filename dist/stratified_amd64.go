//go:build !noasm

package dist

import (
	"math/bits"

	"golang.org/x/sys/cpu"

	"fspda/internal/rng"
)

// strataIn says whether sixteen blocks are drawn from at a time. Only tests change it.
var useStrataAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ

const (
	strataGroup   = 16   // blocks, two for each lane of eight
	maxStrataCall = 4096 // coordinates in one call, which then is left after microseconds
)

// strataLanes is what eight lanes begin with. Lane l has the blocks 2l and 2l+1 of a group; the
// assembly has the fields by their places.
type strataLanes struct {
	counter, rest, begin [8]uint64
	part, short          uint64
	groupPart, groupStep uint64 // rest and begin of the next group
}

//go:noescape
func strataAVX512(dst *uint32, groups int, lanes *strataLanes) (done int)

// fillFast draws from whole groups of blocks, up to one where a number has to be drawn again, and
// returns how many coordinates these are and where the next block begins.
func (c *strataCursor) fillFast(dst []uint32, begin uint32, s *rng.Stream) (n int, next uint32) {
	if !useStrataAVX512 {
		return 0, begin
	}
	for {
		groups := min(len(dst)-n, maxStrataCall) / strataGroup
		if groups == 0 {
			return n, begin
		}
		lanes := c.lanes(begin, *s)
		done := strataAVX512(&dst[n], groups, &lanes)
		drawn := done * strataGroup
		begin = uint32(uint64(begin) + c.advance(drawn))
		s.Skip(uint64(drawn / 2))
		n += drawn
		if done < groups {
			return n, begin
		}
	}
}

// lanes is what to begin with at a block that begins there.
func (c *strataCursor) lanes(begin uint32, s rng.Stream) (l strataLanes) {
	at := *c
	for i := range l.counter {
		s.Skip(1)
		l.counter[i], l.rest[i], l.begin[i] = s.Counter(), at.rest, uint64(begin)
		begin += uint32(at.advance(2))
	}
	l.part, l.short = c.part, uint64(c.short)
	carry, low := bits.Mul64(c.part, strataGroup)
	l.groupPart, l.groupStep = low, strataGroup*uint64(c.short)+carry
	return l
}

// pass goes n blocks on and returns their length.
func (c *strataCursor) advance(n int) (length uint64) {
	high, low := bits.Mul64(c.part, uint64(n))
	rest, over := bits.Add64(c.rest, low, 0)
	c.rest = rest
	return uint64(n)*uint64(c.short) + high + over
}
