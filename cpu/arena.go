package cpu

import (
	"runtime"
	"slices"
	"sync"

	"fspda/cpu/kernel"
	"fspda/device"
)

// minSharedArena is the length, in numbers, from which an arena with its scratch memory does not
// belong to one Program: the Programs of a Device acquire it while they run. A network has a
// Program for each batch size and purpose, of which few run at a time.
const minSharedArena = 1 << 18

// arenaPool holds the arenas that no Program of a Device uses.
type arenaPool struct {
	mu      sync.Mutex
	free    [][]float32 // sorted by length, ascending
	out     int         // arenas in use
	threads int         // threads of a Program
	back    sync.Cond   // signals that an arena was released; its lock is mu
}

// most is how many arenas are in use at a time: as many as Programs that the threads of this
// process can run. More Programs at a time would only take memory.
func (a *arenaPool) most() int { return max(1, runtime.GOMAXPROCS(0)/a.threads) }

// acquire returns an arena of at least n numbers, which are not initialized: the smallest that
// fits. If none fits, the largest is dropped for a new one, so that there are never more arenas
// than Programs have run at a time. It waits while most are in use.
func (a *arenaPool) acquire(n int) []float32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.out >= a.most() {
		a.back.Wait()
	}
	a.out++
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
	a.out--
	a.back.Signal()
}

// Footprint returns the bytes that a run of code needs: its arena, the scratch memory of its
// kernels, and the memory for packed matrices that the kernel that needs most takes from a pool.
func (d *Device) Footprint(code *device.Code) int {
	code, _ = d.plan(code)
	pooled := 0
	for i := range code.Calls {
		pooled = max(pooled, d.kernels.Pooled(&code.Calls[i], d.threads))
	}
	return 4 * (kernel.Padded(code.Arena) + d.maxScratch(code) + pooled)
}

// maxScratch returns the numbers of scratch memory of the kernel that needs most, since kernels run
// one after the other.
func (d *Device) maxScratch(code *device.Code) int {
	most := 0
	for i := range code.Calls {
		most = max(most, d.kernels.Scratch(&code.Calls[i], d.threads))
	}
	return most
}

// allocate gives a Program its own arena and scratch memory, or notes the size to acquire for each
// run.
func (p *Program) allocate() {
	p.spaces[device.Labels] = kernel.Aligned(p.code.LabelNumbers())
	p.spaces[device.Momentum] = make([]float32, 1)
	p.spaces[device.Key] = make([]float32, 4)
	arena, scratch := kernel.Padded(p.planned.Arena), p.device.maxScratch(p.planned)
	if arena+scratch >= minSharedArena {
		p.sharedSize = arena + scratch
		return
	}
	p.spaces[device.Arena], p.scratch = kernel.Aligned(arena), kernel.Aligned(scratch)
}

// attachArena uses an acquired arena for the run.
func (p *Program) attachArena(x []float32) {
	arena := kernel.Padded(p.planned.Arena)
	p.spaces[device.Arena], p.scratch = x[:arena], x[arena:]
	for i := range p.steps {
		p.steps[i].Scratch = p.scratch
	}
}

func (p *Program) releaseArena() {
	arena := p.spaces[device.Arena]
	p.device.arenas.release(arena[:cap(arena)])
	p.spaces[device.Arena], p.scratch = nil, nil
	for i := range p.steps {
		p.steps[i].Scratch = nil
	}
}
