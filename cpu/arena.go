package cpu

import (
	"slices"
	"sync"

	"fspda/device"
)

// sharedFrom is the length from which on an arena, with the room that kernels work in, is not a
// Program's own: the Programs of a Device borrow it while they run. A network has a Program for
// each batch size and purpose, of which few run at a time.
const sharedFrom = 1 << 18

// arenas are those that no Program of a Device uses.
type arenas struct {
	mu   sync.Mutex
	free [][]float32 // in ascending order of length
}

// take returns an arena of at least n numbers, which hold anything: the smallest that fits. Where
// none does, the largest makes room for a new one, so that there are never more than Programs have
// run at a time.
func (a *arenas) take(n int) []float32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, x := range a.free {
		if len(x) >= n {
			a.free = slices.Delete(a.free, i, i+1)
			return x
		}
	}
	if last := len(a.free) - 1; last >= 0 {
		a.free = slices.Delete(a.free, last, last+1)
	}
	return aligned(n)
}

func (a *arenas) give(x []float32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, _ := slices.BinarySearchFunc(a.free, len(x), func(y []float32, n int) int { return len(y) - n })
	a.free = slices.Insert(a.free, at, x)
}

// Footprint forecasts the bytes that a run of code computes in: its arena, and what its kernels
// work in.
func (d *Device) Footprint(code *device.Code) int {
	return 4 * (padded(code.Arena) + scratchOf(code, d.threads()))
}

// scratchOf is how many numbers the kernels of code need to work in, one after the other.
func scratchOf(code *device.Code, threads int) int {
	most := 0
	for i := range code.Calls {
		most = max(most, kernels.scratch(&code.Calls[i], threads))
	}
	return most
}

// allot gives a Program its arena and scratch, or lets it borrow them.
func (p *Program) allot() {
	p.spaces[device.Labels] = aligned(p.code.Batch)
	p.spaces[device.Momentum] = make([]float32, 1)
	arena, scratch := padded(p.code.Arena), scratchOf(p.code, p.device.threads())
	if arena+scratch >= sharedFrom {
		p.shared = arena + scratch
		return
	}
	p.spaces[device.Arena], p.scratch = aligned(arena), aligned(scratch)
}

// useArena puts what was borrowed to use.
func (p *Program) useArena(x []float32) {
	arena := padded(p.code.Arena)
	p.spaces[device.Arena], p.scratch = x[:arena], x[arena:]
	for i := range p.steps {
		p.steps[i].scratch = p.scratch
	}
}

// returnArena gives it back, and forgets it: whoever needs a larger one lets it go.
func (p *Program) returnArena() {
	arena := p.spaces[device.Arena]
	p.device.arenas.give(arena[:cap(arena)])
	p.spaces[device.Arena], p.scratch = nil, nil
	for i := range p.steps {
		p.steps[i].scratch = nil
	}
	for i := range p.moving {
		if m := &p.moving[i]; m.ref.Space == device.Arena {
			*m.operand = nil
		}
	}
}
