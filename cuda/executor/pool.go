package executor

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

// Block is a piece of device memory.
type Block struct {
	At   driver.Pointer
	Size int // bytes; 0: there is none
}

func (b Block) Address() kernels.Address { return kernels.Address(b.At) }

// pool is a caching allocator: it keeps free blocks by size, since the driver's own allocation
// waits for all work of the GPU. A free block may be given out while the GPU still works with it:
// the work of its next user comes later on the same stream.
type pool struct {
	mu       sync.Mutex // protects free
	free     map[int][]Block
	sizes    map[driver.Pointer]int // bytes of every block of the driver; only the executor uses it
	reserved atomic.Int64           // bytes of these
}

// SizeClass rounds a size up, so that free blocks fit again: to a sixteenth of the power of two
// below it, which wastes less than an eighth, but to 512 bytes at least and 2 MiB at most, the unit
// in which the driver gives memory.
func SizeClass(n int) int {
	step := 512
	if n > 16*512 {
		step = min(1<<(bits.Len(uint(n-1))-4), 2<<20)
	}
	return (n + step - 1) / step * step
}

func (p *pool) get(size int) (Block, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free[size]
	if len(free) == 0 {
		return Block{}, false
	}
	b := free[len(free)-1]
	p.free[size] = free[:len(free)-1]
	return b, true
}

// PutBlock gives a block back to the pool. Any goroutine may call it.
func (ex *Executor) PutBlock(b Block) {
	p := &ex.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = map[int][]Block{}
	}
	p.free[b.Size] = append(p.free[b.Size], b)
}

// FreeBlockBytes returns the bytes of the free blocks.
func (ex *Executor) FreeBlockBytes() int {
	p := &ex.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for size, free := range p.free {
		n += size * len(free)
	}
	return n
}

// takeAll empties the pool and returns all blocks of the driver.
func (p *pool) takeAll() []driver.Pointer {
	all := make([]driver.Pointer, 0, len(p.sizes))
	for at := range p.sizes {
		all = append(all, at)
	}
	p.sizes, p.free = nil, nil
	return all
}

// TakeBlock returns a block of at least n bytes, n > 0, which hold anything. Any goroutine but the
// executor may call it.
func (ex *Executor) TakeBlock(n int) (b Block, err error) {
	if err := ex.Err(); err != nil {
		return Block{}, err
	}
	if b, ok := ex.pool.get(SizeClass(n)); ok {
		return b, nil
	}
	return Ask(ex, func() (Block, error) { return ex.Alloc(n) })
}

// Alloc is TakeBlock for the executor.
func (ex *Executor) Alloc(n int) (Block, error) {
	size := SizeClass(n)
	ex.CollectGarbage()
	if b, ok := ex.pool.get(size); ok {
		return b, nil
	}
	b, r := ex.allocDriver(size)
	if r == driver.OutOfMemory {
		ex.trim()
		b, r = ex.allocDriver(size)
	}
	// memory that Go has not yet found to be unused
	for i := 0; i < 5 && r == driver.OutOfMemory; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond << i) // cleanups run in the background
		ex.CollectGarbage()
		ex.trim()
		b, r = ex.allocDriver(size)
	}
	if r != driver.Success {
		free, _, _ := ex.FreeMemory()
		return Block{}, ex.API.Check(r, "cuMemAlloc",
			"taking %s of device memory, of which %s are in use here and %s are free",
			FormatBytes(size), FormatBytes(ex.ReservedBytes()), FormatBytes(int(free)))
	}
	return b, nil
}

func (ex *Executor) allocDriver(size int) (Block, driver.Result) {
	b := Block{Size: size}
	r := ex.API.MemAlloc(&b.At, uintptr(size))
	if r == driver.Success {
		if ex.pool.sizes == nil {
			ex.pool.sizes = map[driver.Pointer]int{}
		}
		ex.pool.sizes[b.At] = size
		ex.pool.reserved.Add(int64(size))
	}
	return b, r
}

// BlockAt returns the block that begins at an address. The executor calls it.
func (ex *Executor) BlockAt(at driver.Pointer) (b Block, ok bool) {
	size, ok := ex.pool.sizes[at]
	return Block{at, size}, ok
}

// trim gives all free blocks back to the driver.
func (ex *Executor) trim() {
	ex.pool.mu.Lock()
	defer ex.pool.mu.Unlock()
	for size, free := range ex.pool.free {
		for _, b := range free {
			ex.Fail(ex.API.Check(ex.API.MemFree(b.At), "cuMemFree", "giving back device memory"))
			ex.pool.reserved.Add(-int64(size))
			delete(ex.pool.sizes, b.At)
		}
		delete(ex.pool.free, size)
	}
}

// ReservedBytes returns how many bytes the driver has given, including free blocks. Any goroutine
// may call it.
func (ex *Executor) ReservedBytes() int { return int(ex.pool.reserved.Load()) }

// Borrow takes blocks of these sizes until end is called, which returns all free memory to the
// driver: such blocks are larger than most others. The executor calls both.
func (ex *Executor) Borrow(bytes ...int) (at []driver.Pointer, end func(), err error) {
	var blocks []Block
	end = func() {
		for _, b := range blocks {
			ex.PutBlock(b)
		}
		ex.trim()
	}
	for _, n := range bytes {
		b, err := ex.Alloc(max(n, 1))
		if err != nil {
			end()
			return nil, nil, err
		}
		blocks, at = append(blocks, b), append(at, b.At)
	}
	return at, end, nil
}

// FormatBytes writes a number of bytes in a unit that fits.
func FormatBytes(n int) string {
	v, unit := float64(n), 0
	for v >= 1000 && unit < 3 {
		v /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %s", v, [...]string{"bytes", "kB", "MB", "GB"}[unit])
}
