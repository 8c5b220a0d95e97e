package dist

import (
	"fmt"
	"sync"
	"sync/atomic"

	"fspda/device"
)

// Buffer is a device vector in flight. Its sender writes V before the first Send; from then on all
// who hold it only read it. It counts its holders and goes back to its Pool when the last one has
// let go.
type Buffer struct {
	V device.Vector
	// Coords are the coordinates of V's numbers in the vector they stem from, ascending, where a
	// compressor picked them; else empty. They are shared and reused together with V. Those that a
	// seed gives need not travel: a receiver who finds none draws them. Get leaves them empty.
	Coords []uint32

	pool    *Pool
	free    func() // of a wrapped buffer: it goes back to no pool
	holders atomic.Int32
}

// Retain adds n holders, each of whom has to call Release. It panics when nobody holds the buffer
// any more.
func (b *Buffer) Retain(n int) {
	if n < 0 {
		panic(fmt.Sprintf("dist: Buffer.Retain(%d)", n))
	}
	if now := b.holders.Add(int32(n)); int(now) <= n && n > 0 {
		panic("dist: Buffer.Retain of a buffer that was released")
	}
}

// Release lets go of the buffer for one holder, who must not touch it again. It panics when there
// are more releases than holders.
func (b *Buffer) Release() {
	switch left := b.holders.Add(-1); {
	case left == 0 && b.free != nil:
		b.free()
	case left == 0:
		b.pool.put(b)
	case left < 0:
		panic("dist: Buffer.Release of a buffer that nobody holds")
	}
}

// Device is where the buffer's vector lives.
func (b *Buffer) Device() device.Device { return b.pool.dev }

// Pool lends Buffers whose vectors live on one device. It is safe for concurrent use.
type Pool struct {
	dev device.Device

	mu   sync.Mutex
	free map[int]*freeList // by length
	uses uint64            // counts calls of Get, as the clock of the shelves
}

// shelf holds the free buffers of one length.
type freeList struct {
	buffers []*Buffer
	used    uint64
}

// maxShelves bounds how many different lengths wait for reuse. Most runs know one; masks of varying
// size make many, of which the least recently used is dropped.
const maxFreeLists = 256

// NewPool returns an empty pool of buffers on dev.
func NewPool(dev device.Device) *Pool {
	return &Pool{dev: dev, free: make(map[int]*freeList)}
}

// Device is where the buffers live.
func (p *Pool) Device() device.Device { return p.dev }

// Get returns a buffer of n numbers with one holder, the caller. What stands in it is left from
// earlier use.
func (p *Pool) Get(n int) *Buffer {
	if b := p.reuse(n); b != nil {
		b.holders.Store(1)
		b.Coords = b.Coords[:0]
		return b
	}
	b := &Buffer{V: p.dev.NewVector(n), pool: p}
	b.holders.Store(1)
	return b
}

// Wrap returns a buffer of numbers that lie in memory of the caller, with one holder, where the
// device can use them there. The last holder's Release calls free, and until then the numbers stay
// as they are.
func (p *Pool) Wrap(numbers []float32, free func()) (b *Buffer, ok bool) {
	host, ok := p.dev.(device.Host)
	if !ok {
		return nil, false
	}
	b = &Buffer{V: host.Wrap(numbers), pool: p, free: free}
	b.holders.Store(1)
	return b, true
}

// Floats returns the numbers of a buffer of the pool where they are, if the device has them in the
// memory of the process.
func (p *Pool) Floats(b *Buffer) (numbers []float32, ok bool) {
	host, ok := p.dev.(device.Host)
	if !ok {
		return nil, false
	}
	return host.Floats(b.V), true
}

func (p *Pool) reuse(n int) *Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses++
	s := p.free[n]
	if s == nil || len(s.buffers) == 0 {
		return nil
	}
	s.used = p.uses
	last := len(s.buffers) - 1
	b := s.buffers[last]
	s.buffers[last] = nil
	s.buffers = s.buffers[:last]
	return b
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

// dropOldest forgets the length that was not asked for the longest, ties by the shorter length.
func (p *Pool) evict() {
	oldest := -1
	for n, s := range p.free {
		if oldest < 0 || s.used < p.free[oldest].used || s.used == p.free[oldest].used && n < oldest {
			oldest = n
		}
	}
	delete(p.free, oldest)
}
