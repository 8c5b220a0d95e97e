//go:build !noasm && !fspda_noasm

package strata

import (
	"golang.org/x/sys/cpu"

	"fspda/internal/rng"
)

// useAssembly selects the assembly. Only tests change it.
var useAssembly = cpu.ARM64.HasASIMD

const groupSize = 8 // blocks

// lanes is the initial state: the counter of random numbers, the constants of the cursor, and the
// rest and the beginning of each block of a group. The assembly depends on the order of the fields.
type lanes struct {
	counter, part, short uint64
	groupPart, groupStep uint64 // increments of rest and begin per group
	rest                 [groupSize]uint64
	begin                [groupSize]uint32
}

func drawAsm(dst *uint32, groups int, lanes *lanes) (done int) {
	return drawNEON(dst, groups, &lanes.counter)
}

// start returns the initial state for a block that begins at begin.
func (c *cursor) start(begin uint32, s rng.Stream) (l lanes) {
	l.counter, l.part, l.short = s.Counter(), c.part, uint64(c.short)
	l.groupPart, l.groupStep = c.group()
	at := *c
	for i := range l.rest {
		l.rest[i], l.begin[i] = at.rest, begin
		begin += uint32(at.advance(1))
	}
	return l
}
