//go:build !noasm && !fspda_noasm

package dist

import (
	"math/bits"

	"golang.org/x/sys/cpu"

	"fspda/internal/rng"
)

// useStrataAVX512 selects the AVX-512 implementation, which draws from sixteen blocks at a time.
// Only tests change it.
var useStrataAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ

const (
	strataGroup   = 16   // blocks, two per lane of eight
	maxStrataCall = 4096 // coordinates per call, so that a call takes microseconds and does not delay preemption
)

// strataLanes is the initial state of eight lanes. Lane l has the blocks 2l and 2l+1 of a group.
// The assembly depends on the order of the fields.
type strataLanes struct {
	counter, rest, begin [8]uint64
	part, short          uint64
	groupPart, groupStep uint64 // increments of rest and begin per group
}

//go:noescape
func strataAVX512(dst *uint32, groups int, lanes *strataLanes) (done int)

// fillFast draws from whole groups of blocks and stops at a group with a rejected draw. It returns
// the number of coordinates and the beginning of the next block.
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

// lanes returns the initial state for a block that begins at begin.
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

// advance moves n blocks on and returns their total length.
func (c *strataCursor) advance(n int) (length uint64) {
	high, low := bits.Mul64(c.part, uint64(n))
	rest, over := bits.Add64(c.rest, low, 0)
	c.rest = rest
	return uint64(n)*uint64(c.short) + high + over
}
