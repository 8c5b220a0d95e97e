package link

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// bodyPool is a free list of memory for the bodies of large messages. Fresh memory would have to be
// zeroed and garbage-collected for each message.
type bodyPool struct {
	mu   sync.Mutex
	free [][]byte
}

const (
	minInPlace      = 128 << 10 // larger bodies are sent from the memory of the values, without a copy
	minPooledBody   = 1 << 10   // smaller bodies are not pooled
	maxPooledBodies = 4         // bodies in the free list
)

// get returns an empty body with capacity for n bytes. The values of a message of one vector are
// aligned to a cache line.
func (l *bodyPool) get(n int) []byte {
	if n < minPooledBody {
		return make([]byte, 0, n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range slices.Backward(l.free) { // the last one may still be in the cache
		if cap(b) >= n && cap(b)/2 <= n {
			l.free = slices.Delete(l.free, i, i+1)
			return b[:0]
		}
	}
	const line = 64
	b := make([]byte, n+line)
	skip := -(uintptr(unsafe.Pointer(&b[0])) + headSize(1)) % line
	return b[skip:skip]
}

// put returns a body to the pool. Nobody may use it any more.
func (l *bodyPool) put(b []byte) {
	if cap(b) < minPooledBody {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == maxPooledBodies {
		copy(l.free, l.free[1:]) // sizes change: recent ones fit best
		l.free = l.free[:maxPooledBodies-1]
	}
	l.free = append(l.free, b)
}

// bodyRef counts the references to the memory of a body: the log that keeps it, and the senders
// that transmit it. A nil bodyRef stands for memory that is not recycled.
type bodyRef struct {
	holders atomic.Int32
	free    func() // returns the memory
}

// newBodyRef returns a bodyRef with one reference.
func newBodyRef(free func()) *bodyRef {
	l := &bodyRef{free: free}
	l.holders.Store(1)
	return l
}

// retain adds a reference. The caller must know that there is another one.
func (l *bodyRef) retain() {
	if l != nil {
		l.holders.Add(1)
	}
}

func (l *bodyRef) release() {
	if l != nil && l.holders.Add(-1) == 0 {
		l.free()
	}
}

// Get and Put implement gRPC's mem.BufferPool: gRPC calls Put when it has written a fragment to the
// network.
func (l *bodyRef) Get(n int) *[]byte { b := make([]byte, n); return &b }
func (l *bodyRef) Put(*[]byte)       { l.release() }
