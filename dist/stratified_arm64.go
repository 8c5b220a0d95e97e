//go:build !noasm && !fspda_noasm

package dist

import (
	"golang.org/x/sys/cpu"

	"fspda/internal/rng"
)

// useStrata selects the assembly. Only tests change it.
var useStrata = cpu.ARM64.HasASIMD

const strataGroup = 8 // blocks

// strataLanes is the initial state: the counter of random numbers, the constants of strataCursor, and
// for each block of a group the rest and the beginning. The assembly depends on the order of the fields.
type strataLanes struct {
	counter, part, short uint64
	groupPart, groupStep uint64 // increments of rest and begin per group
	rest                 [strataGroup]uint64
	begin                [strataGroup]uint32
}

func strataAsm(dst *uint32, groups int, lanes *strataLanes) (done int) {
	return strataNEON(dst, groups, &lanes.counter)
}

// lanes returns the initial state for a block that begins at begin.
func (c *strataCursor) lanes(begin uint32, s rng.Stream) (l strataLanes) {
	l.counter, l.part, l.short = s.Counter(), c.part, uint64(c.short)
	l.groupPart, l.groupStep = c.group()
	at := *c
	for i := range l.rest {
		l.rest[i], l.begin[i] = at.rest, begin
		begin += uint32(at.advance(1))
	}
	return l
}
