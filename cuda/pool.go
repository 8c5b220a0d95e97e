package cuda

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// block is a piece of device memory.
type block struct {
	at   driver.Pointer
	size int // bytes
}

// address is where a block lies, for kernels.
func (b block) address() kernels.Address { return kernels.Address(b.at) }

// pool keeps device memory that nobody uses, by size, since the driver's own allocation waits for
// all work of the GPU. A block may be given out again while the GPU still works with it: what comes
// next comes after that on the same stream.
type pool struct {
	mu          sync.Mutex // of free
	free        map[int][]block
	sizes       map[driver.Pointer]int // every block that the driver gave, with its size
	reserved    int                    // bytes of these
	reservedNow atomic.Int64           // held, for others than the owner
}

// classOf rounds a size up, so that blocks fit again: to a sixteenth of the power of two below it,
// to 512 bytes at least, so that less than an eighth is wasted, and to 2 MiB at most, in which the
// driver gives memory.
func sizeClass(n int) int {
	step := 512
	if n > 16*512 {
		step = min(1<<(bits.Len(uint(n-1))-4), 2<<20)
	}
	return (n + step - 1) / step * step
}

// alloc returns a block of at least n bytes, n > 0, that hold anything.
func (ex *executor) alloc(n int) (block, error) {
	size := sizeClass(n)
	ex.collectGarbage()
	if b, ok := ex.pool.get(size); ok {
		return b, nil
	}
	b, r := ex.allocDriver(size)
	if r == driver.OutOfMemory {
		ex.trim()
		b, r = ex.allocDriver(size)
	}
	for i := 0; i < 5 && r == driver.OutOfMemory; i++ { // memory that Go has not yet seen to be unused
		runtime.GC()
		time.Sleep(time.Millisecond << i) // it tells of it in the background
		ex.collectGarbage()
		ex.trim()
		b, r = ex.allocDriver(size)
	}
	if r != driver.Success {
		var free, total uintptr
		ex.api.MemGetInfo(&free, &total)
		return block{}, ex.api.Check(r, "cuMemAlloc",
			"taking %s of device memory, of which %s are in use here and %s are free", formatBytes(size), formatBytes(
				ex.pool.reserved), formatBytes(int(free)))
	}
	return b, nil
}

// get is alloc for any goroutine.
func (ex *executor) allocFrom(n int) (b block, err error) {
	if err := ex.err(); err != nil {
		return block{}, err
	}
	if b, ok := ex.pool.get(sizeClass(n)); ok {
		return b, nil
	}
	err = ex.do(func() (err error) {
		b, err = ex.alloc(n)
		return err
	})
	return b, err
}

// gigabytes writes a number of bytes in the unit that fits.
func formatBytes(n int) string {
	v, unit := float64(n), 0
	for v >= 1000 && unit < 3 {
		v /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %s", v, [...]string{"bytes", "kB", "MB", "GB"}[unit])
}

func (ex *executor) allocDriver(size int) (block, driver.Result) {
	b := block{size: size}
	r := ex.api.MemAlloc(&b.at, uintptr(size))
	if r == driver.Success {
		if ex.pool.sizes == nil {
			ex.pool.sizes = map[driver.Pointer]int{}
		}
		ex.pool.sizes[b.at] = size
		ex.pool.reserved += size
		ex.pool.reservedNow.Store(int64(ex.pool.reserved))
	}
	return b, r
}

func (p *pool) get(size int) (block, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free[size]
	if len(free) == 0 {
		return block{}, false
	}
	b := free[len(free)-1]
	p.free[size] = free[:len(free)-1]
	return b, true
}

// idle is the bytes that nobody uses.
func (p *pool) freeBytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for size, free := range p.free {
		n += size * len(free)
	}
	return n
}

func (p *pool) put(b block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = map[int][]block{}
	}
	p.free[b.size] = append(p.free[b.size], b)
}

// every lists what is to be given back at the end.
func (p *pool) takeAll() []driver.Pointer {
	all := make([]driver.Pointer, 0, len(p.sizes))
	for at := range p.sizes {
		all = append(all, at)
	}
	p.sizes, p.free = nil, nil
	return all
}

// collect takes what the collector has found.
func (ex *executor) collectGarbage() {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	for _, b := range ex.garbage.blocks {
		ex.pool.put(b)
	}
	for _, e := range ex.garbage.graphs {
		ex.fail(ex.api.Check(ex.api.GraphExecDestroy(e), "cuGraphExecDestroy", "giving back a graph"))
		delete(ex.graphs, e)
	}
	for _, x := range ex.garbage.closers {
		ex.fail(x.Close())
		delete(ex.closers, x)
	}
	ex.idleEvents = append(ex.idleEvents, ex.garbage.events...)
	ex.garbage.closers, ex.garbage.events = ex.garbage.closers[:0], ex.garbage.events[:0]
	ex.garbage.blocks, ex.garbage.graphs = ex.garbage.blocks[:0], ex.garbage.graphs[:0]
}

// release gives all free blocks back to the driver.
func (ex *executor) trim() {
	ex.pool.mu.Lock()
	defer ex.pool.mu.Unlock()
	for size, free := range ex.pool.free {
		for _, b := range free {
			ex.fail(ex.api.Check(ex.api.MemFree(b.at), "cuMemFree", "giving back device memory"))
			ex.pool.reserved -= size
			ex.pool.reservedNow.Store(int64(ex.pool.reserved))
			delete(ex.pool.sizes, b.at)
		}
		delete(ex.pool.free, size)
	}
}

// discard is for finalisers: it may be called from any goroutine, and never waits.
func (ex *executor) discard(b block) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	ex.garbage.blocks = append(ex.garbage.blocks, b)
}

// inUse is how many bytes the driver has given.
func (ex *executor) reservedBytes() int { return int(ex.pool.reservedNow.Load()) }

// discardGraphs is discard for graphs.
func (ex *executor) discardGraphs(graphs ...driver.GraphExec) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	ex.garbage.graphs = append(ex.garbage.graphs, graphs...)
}

// described is what a library keeps of a convolution or a product that was described to it, until
// it is closed.
type closer interface{ Close() error }

// keep remembers what a library keeps, so that it is closed with the device at the latest.
func (ex *executor) track(x closer) { ex.closers[x] = true }

// discardDescribed is discard for such.
func (ex *executor) discardCloser(x closer) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	ex.garbage.closers = append(ex.garbage.closers, x)
}

// discardEvents is discard for events, of which 0 is none.
func (ex *executor) discardEvents(events ...driver.Event) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	for _, e := range events {
		if e != 0 {
			ex.garbage.events = append(ex.garbage.events, e)
		}
	}
}
