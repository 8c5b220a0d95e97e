//go:build !noasm && !fspda_noasm

package strata

import (
	"golang.org/x/sys/cpu"

	"fspda/internal/rng"
)

// useAssembly selects the AVX-512 implementation, which draws from sixteen blocks at a time.
// Only tests change it.
var useAssembly = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ

const groupSize = 16 // blocks, two per lane of eight

// lanes is the initial state of eight lanes. Lane l has the blocks 2l and 2l+1 of a group.
// The assembly depends on the order of the fields.
type lanes struct {
	counter, rest, begin [8]uint64
	part, short          uint64
	groupPart, groupStep uint64 // increments of rest and begin per group
}

func drawAsm(dst *uint32, groups int, lanes *lanes) (done int) {
	return drawAVX512(dst, groups, lanes)
}

//go:noescape
func drawAVX512(dst *uint32, groups int, lanes *lanes) (done int)

// start returns the initial state for a block that begins at begin.
func (c *cursor) start(begin uint32, s rng.Stream) (l lanes) {
	at := *c
	for i := range l.counter {
		s.Skip(1)
		l.counter[i], l.rest[i], l.begin[i] = s.Counter(), at.rest, uint64(begin)
		begin += uint32(at.advance(2))
	}
	l.part, l.short = c.part, uint64(c.short)
	l.groupPart, l.groupStep = c.group()
	return l
}
