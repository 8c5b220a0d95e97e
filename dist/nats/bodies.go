package nats

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// bodies lends memory for the bodies of large messages, and takes it back: fresh memory would have
// to be cleared, and cleared away, for each.
type bodies struct {
	mu   sync.Mutex
	free [][]byte
}

const (
	leastBody = 64 << 10 // smaller ones are not worth it
	idle      = 4        // so many wait for use
)

// get lends an empty body with room for n bytes. The numbers of a message of one vector begin at a
// cache line.
func (l *bodies) get(n int) []byte {
	if n < leastBody {
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

// put takes back a body that nobody reads any more.
func (l *bodies) put(b []byte) {
	if cap(b) < leastBody {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == idle {
		copy(l.free, l.free[1:]) // sizes change: what came last fits best
		l.free = l.free[:idle-1]
	}
	l.free = append(l.free, b)
}

// lent counts who needs the memory of a body: the log that keeps it, and who sends it just now. A
// nil one belongs to memory that nobody waits for.
type lent struct {
	holders atomic.Int32
	free    func() // gives the memory back
}

// newLent returns one with a holder.
func newLent(free func()) *lent {
	l := &lent{free: free}
	l.holders.Store(1)
	return l
}

// hold adds a holder. There is another one, which the caller makes sure of.
func (l *lent) hold() {
	if l != nil {
		l.holders.Add(1)
	}
}

func (l *lent) release() {
	if l != nil && l.holders.Add(-1) == 0 {
		l.free()
	}
}

// Get and Put make a lent body what gRPC calls a pool: it puts a piece back when it has been
// written to the network.
func (l *lent) Get(n int) *[]byte { b := make([]byte, n); return &b }
func (l *lent) Put(*[]byte)       { l.release() }
