package dist

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"fspda/device"
)

// Buffer is a reference-counted device vector for messages. The sender writes V before the first
// Send; from then on it is read-only. The buffer returns to its Pool when the last reference is
// released.
type Buffer struct {
	V device.Vector
	// Coords are the coordinates of V's numbers in the original vector, ascending, if a compressor
	// chose them by value; otherwise empty. They are shared and reused together with V. Coordinates
	// that follow from a seed are not sent: the receiver draws them. Get leaves Coords empty.
	Coords []uint32

	pool    *Pool
	used    int    // The iteration that acquired the buffer last.
	free    func() // Returns the memory of a wrapped buffer, which has no pool.
	holders atomic.Int32
}

// Retain adds n references, each of which must be released. It panics if the buffer was released
// already.
func (b *Buffer) Retain(n int) {
	if n < 0 {
		panic(fmt.Sprintf("dist: Buffer.Retain(%d)", n))
	}
	if now := b.holders.Add(int32(n)); int(now) <= n && n > 0 {
		panic("dist: Buffer.Retain of a buffer that was released")
	}
}

// Release gives up one reference. The caller must not use the buffer any more. It panics if there
// are more releases than references.
func (b *Buffer) Release() {
	switch left := b.holders.Add(-1); {
	case left == 0 && b.free != nil:
		b.free()
	case left == 0:
		b.pool.put(b)
	case left < 0:
		panic("dist: Buffer.Release of a buffer without references")
	}
}

func (b *Buffer) Device() device.Device { return b.pool.dev }

// Pool recycles Buffers whose vectors are on one device. It is safe for concurrent use.
type Pool struct {
	dev   device.Device
	later bool // the device computes later than it is asked to

	mu   sync.Mutex
	free map[int]*freeList // The free buffers of each length.
	uses uint64            // The number of calls of Get, which tells the least recently used list.
}

type freeList struct {
	buffers []*Buffer
	used    uint64
}

// maxFreeLists bounds the number of lengths that are recycled. Most runs use one length. Masks of
// varying size use many, of which the least recently used one is evicted.
const maxFreeLists = 256

// NewPool returns an empty pool of buffers on dev.
func NewPool(dev device.Device) *Pool {
	return &Pool{dev: dev, later: dev.Features().Host == nil, free: make(map[int]*freeList)}
}

func (p *Pool) Device() device.Device { return p.dev }

// smallBuffer is the most numbers of a buffer of which there may be more than messages at a time.
const smallBuffer = 1 << 16

// Get returns a buffer of n numbers with one reference. Its content is undefined.
func (p *Pool) Get(n int) *Buffer { return p.get(n, func(*Buffer) bool { return true }) }

// GetFor is Get for iteration t. A device that computes later than it is asked to must not overwrite
// a buffer that an agent ahead still reads there: of these it would wait for the agent's whole
// iteration. So a small buffer is one that was used in earlier iterations only.
func (p *Pool) GetFor(t, n int) *Buffer {
	b := p.get(n, func(b *Buffer) bool { return b.used < t || !p.later || n > smallBuffer })
	b.used = t
	return b
}

// get returns a free buffer that serves, or a new one.
func (p *Pool) get(n int, serves func(*Buffer) bool) *Buffer {
	b := p.reuse(n, serves)
	if b == nil {
		b = &Buffer{V: p.dev.NewVector(n), pool: p}
	}
	b.holders.Store(1)
	b.Coords = b.Coords[:0]
	return b
}

// Adopt adds a vector of the pool's device, which the caller no longer uses, to the free buffers.
func (p *Pool) Adopt(v device.Vector) { p.put(&Buffer{V: v, pool: p}) }

// Wrap returns a buffer with one reference that uses memory of the caller, if the device can access
// it. The last Release calls free; until then the numbers must not change.
func (p *Pool) Wrap(numbers []float32, free func()) (b *Buffer, ok bool) {
	host := p.dev.Features().Host
	if host == nil {
		return nil, false
	}
	b = &Buffer{V: host.Wrap(numbers), pool: p, free: free}
	b.holders.Store(1)
	return b, true
}

// Floats returns the numbers of a buffer without a copy, if the device keeps them in host memory.
func (p *Pool) Floats(b *Buffer) (numbers []float32, ok bool) {
	host := p.dev.Features().Host
	if host == nil {
		return nil, false
	}
	return host.Floats(b.V), true
}

// reuse takes the free buffer of n numbers that was released last of those that serve.
func (p *Pool) reuse(n int, serves func(*Buffer) bool) *Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses++
	s := p.free[n]
	if s == nil {
		return nil
	}
	s.used = p.uses
	for i, b := range slices.Backward(s.buffers) {
		if serves(b) {
			s.buffers = slices.Delete(s.buffers, i, i+1)
			return b
		}
	}
	return nil
}

func (p *Pool) put(b *Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := b.V.Len()
	s := p.free[n]
	if s == nil {
		if len(p.free) == maxFreeLists {
			p.evict()
		}
		s = new(freeList)
		p.free[n] = s
	}
	s.used = p.uses
	s.buffers = append(s.buffers, b)
}

// evict removes the free list of the least recently used length, the shorter one in a tie.
func (p *Pool) evict() {
	oldest := -1
	for n, s := range p.free {
		if oldest < 0 || s.used < p.free[oldest].used || s.used == p.free[oldest].used && n < oldest {
			oldest = n
		}
	}
	delete(p.free, oldest)
}
