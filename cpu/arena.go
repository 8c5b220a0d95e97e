package cpu

import (
	"slices"
	"sync"

	"fspda/cpu/kernel"
	"fspda/device"
)

// sharedFrom is the length from which on an arena, with the room that kernels work in, is not a
// Program's own: the Programs of a Device borrow it while they run. A network has a Program for
// each batch size and purpose, of which few run at a time.
const minSharedArena = 1 << 18

// arenas are those that no Program of a Device uses.
type arenaPool struct {
	mu   sync.Mutex
	free [][]float32 // in ascending order of length
}

// take returns an arena of at least n numbers, which hold anything: the smallest that fits. Where
// none does, the largest makes room for a new one, so that there are never more than Programs have
// run at a time.
func (a *arenaPool) acquire(n int) []float32 {
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
	return kernel.Aligned(n)
}

func (a *arenaPool) release(x []float32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, _ := slices.BinarySearchFunc(a.free, len(x), func(y []float32, n int) int { return len(y) - n })
	a.free = slices.Insert(a.free, at, x)
}

// Footprint forecasts the bytes that a run of code computes in: its arena, and what its kernels
// work in.
func (d *Device) Footprint(code *device.Code) int {
	return 4 * (kernel.Padded(code.Arena) + maxScratch(code, d.threads))
}

// scratchOf is how many numbers the kernels of code need to work in, one after the other.
func maxScratch(code *device.Code, threads int) int {
	most := 0
	for i := range code.Calls {
		most = max(most, kernels.Scratch(&code.Calls[i], threads))
	}
	return most
}

// allot gives a Program its arena and scratch, or lets it borrow them.
func (p *Program) allocate() {
	p.spaces[device.Labels] = kernel.Aligned(p.code.Batch)
	p.spaces[device.Momentum] = make([]float32, 1)
	arena, scratch := kernel.Padded(p.code.Arena), maxScratch(p.code, p.device.threads)
	if arena+scratch >= minSharedArena {
		p.sharedSize = arena + scratch
		return
	}
	p.spaces[device.Arena], p.scratch = kernel.Aligned(arena), kernel.Aligned(scratch)
}

// useArena puts what was borrowed to use.
func (p *Program) attachArena(x []float32) {
	arena := kernel.Padded(p.code.Arena)
	p.spaces[device.Arena], p.scratch = x[:arena], x[arena:]
	for i := range p.steps {
		p.steps[i].Scratch = p.scratch
	}
}

// returnArena gives it back, and forgets it: whoever needs a larger one lets it go.
func (p *Program) releaseArena() {
	arena := p.spaces[device.Arena]
	p.device.arenas.release(arena[:cap(arena)])
	p.spaces[device.Arena], p.scratch = nil, nil
	for i := range p.steps {
		p.steps[i].Scratch = nil
	}
	for i := range p.runtimeOperands {
		if m := &p.runtimeOperands[i]; m.ref.Space == device.Arena {
			*m.operand = nil
		}
	}
}
