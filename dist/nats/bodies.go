package nats

import (
	"sync"
	"sync/atomic"
)

// bodies lends memory for the bodies of large messages, and takes it back: fresh memory would have to be cleared, and cleared away, for each.
type bodies struct {
	mu   sync.Mutex
	free [][]byte
}

const (
	leastBody = 64 << 10 // smaller ones are not worth it
	idle      = 4        // so many wait for use
)

// get lends an empty body with room for n bytes.
func (l *bodies) get(n int) []byte {
	if n < leastBody {
		return make([]byte, 0, n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range l.free {
		if cap(b) >= n && cap(b)/2 <= n {
			last := len(l.free) - 1
			l.free[i], l.free[last] = l.free[last], nil
			l.free = l.free[:last]
			return b[:0]
		}
	}
	return make([]byte, 0, n)
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

// lent counts who reads a body just now. A nil one belongs to memory that is not lent.
type lent struct{ readers atomic.Int32 }

func (l *lent) hold() {
	if l != nil {
		l.readers.Add(1)
	}
}

func (l *lent) release() {
	if l != nil {
		l.readers.Add(-1)
	}
}

// spent tells whether the body may go back. Nobody begins to read it any more, which the caller makes sure of.
func (l *lent) spent() bool { return l != nil && l.readers.Load() == 0 }

// Get and Put make a lent body what gRPC calls a pool: it puts a piece back when it has been written to the network.
func (l *lent) Get(n int) *[]byte { b := make([]byte, n); return &b }
func (l *lent) Put(*[]byte)       { l.release() }
