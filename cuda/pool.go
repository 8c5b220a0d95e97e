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
	mu   sync.Mutex // of free
	free map[int][]block
	all  map[driver.Pointer]int // every block that the driver gave, with its size
	held int                    // bytes of these
	told atomic.Int64           // held, for others than the owner
}

// classOf rounds a size up, so that blocks fit again: to a sixteenth of the power of two below it,
// to 512 bytes at least, so that less than an eighth is wasted, and to 2 MiB at most, in which the
// driver gives memory.
func classOf(n int) int {
	step := 512
	if n > 16*512 {
		step = min(1<<(bits.Len(uint(n-1))-4), 2<<20)
	}
	return (n + step - 1) / step * step
}

// alloc returns a block of at least n bytes, n > 0, that hold anything.
func (o *owner) alloc(n int) (block, error) {
	size := classOf(n)
	o.collect()
	if b, ok := o.pool.take(size); ok {
		return b, nil
	}
	b, r := o.allocNew(size)
	if r == driver.OutOfMemory {
		o.release()
		b, r = o.allocNew(size)
	}
	for i := 0; i < 5 && r == driver.OutOfMemory; i++ { // memory that Go has not yet seen to be unused
		runtime.GC()
		time.Sleep(time.Millisecond << i) // it tells of it in the background
		o.collect()
		o.release()
		b, r = o.allocNew(size)
	}
	if r != driver.Success {
		var free, total uintptr
		o.api.MemGetInfo(&free, &total)
		return block{}, o.api.Check(r, "cuMemAlloc",
			"taking %s of device memory, of which %s are in use here and %s are free", gigabytes(size), gigabytes(
				o.pool.held), gigabytes(int(free)))
	}
	return b, nil
}

// get is alloc for any goroutine.
func (o *owner) get(n int) (b block, err error) {
	if err := o.err(); err != nil {
		return block{}, err
	}
	if b, ok := o.pool.take(classOf(n)); ok {
		return b, nil
	}
	err = o.ask(func() (err error) {
		b, err = o.alloc(n)
		return err
	})
	return b, err
}

// gigabytes writes a number of bytes in the unit that fits.
func gigabytes(n int) string {
	v, unit := float64(n), 0
	for v >= 1000 && unit < 3 {
		v /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %s", v, [...]string{"bytes", "kB", "MB", "GB"}[unit])
}

func (o *owner) allocNew(size int) (block, driver.Result) {
	b := block{size: size}
	r := o.api.MemAlloc(&b.at, uintptr(size))
	if r == driver.Success {
		if o.pool.all == nil {
			o.pool.all = map[driver.Pointer]int{}
		}
		o.pool.all[b.at] = size
		o.pool.held += size
		o.pool.told.Store(int64(o.pool.held))
	}
	return b, r
}

func (p *pool) take(size int) (block, bool) {
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
func (p *pool) idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for size, free := range p.free {
		n += size * len(free)
	}
	return n
}

func (p *pool) give(b block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = map[int][]block{}
	}
	p.free[b.size] = append(p.free[b.size], b)
}

// every lists what is to be given back at the end.
func (p *pool) every() []driver.Pointer {
	all := make([]driver.Pointer, 0, len(p.all))
	for at := range p.all {
		all = append(all, at)
	}
	p.all, p.free = nil, nil
	return all
}

// collect takes what the collector has found.
func (o *owner) collect() {
	o.garbage.Lock()
	defer o.garbage.Unlock()
	for _, b := range o.garbage.blocks {
		o.pool.give(b)
	}
	for _, e := range o.garbage.execs {
		o.fail(o.api.Check(o.api.GraphExecDestroy(e), "cuGraphExecDestroy", "giving back a graph"))
		delete(o.execs, e)
	}
	for _, x := range o.garbage.library {
		o.fail(x.Close())
		delete(o.described, x)
	}
	o.events = append(o.events, o.garbage.events...)
	o.garbage.library, o.garbage.events = o.garbage.library[:0], o.garbage.events[:0]
	o.garbage.blocks, o.garbage.execs = o.garbage.blocks[:0], o.garbage.execs[:0]
}

// release gives all free blocks back to the driver.
func (o *owner) release() {
	o.pool.mu.Lock()
	defer o.pool.mu.Unlock()
	for size, free := range o.pool.free {
		for _, b := range free {
			o.fail(o.api.Check(o.api.MemFree(b.at), "cuMemFree", "giving back device memory"))
			o.pool.held -= size
			o.pool.told.Store(int64(o.pool.held))
			delete(o.pool.all, b.at)
		}
		delete(o.pool.free, size)
	}
}

// discard is for finalisers: it may be called from any goroutine, and never waits.
func (o *owner) discard(b block) {
	o.garbage.Lock()
	defer o.garbage.Unlock()
	o.garbage.blocks = append(o.garbage.blocks, b)
}

// inUse is how many bytes the driver has given.
func (o *owner) inUse() int { return int(o.pool.told.Load()) }

// discardGraphs is discard for graphs.
func (o *owner) discardGraphs(graphs ...driver.GraphExec) {
	o.garbage.Lock()
	defer o.garbage.Unlock()
	o.garbage.execs = append(o.garbage.execs, graphs...)
}

// described is what a library keeps of a convolution or a product that was described to it, until
// it is closed.
type described interface{ Close() error }

// keep remembers what a library keeps, so that it is closed with the device at the latest.
func (o *owner) keep(x described) { o.described[x] = true }

// discardDescribed is discard for such.
func (o *owner) discardDescribed(x described) {
	o.garbage.Lock()
	defer o.garbage.Unlock()
	o.garbage.library = append(o.garbage.library, x)
}

// discardEvents is discard for events, of which 0 is none.
func (o *owner) discardEvents(events ...driver.Event) {
	o.garbage.Lock()
	defer o.garbage.Unlock()
	for _, e := range events {
		if e != 0 {
			o.garbage.events = append(o.garbage.events, e)
		}
	}
}
