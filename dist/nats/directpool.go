package nats

import "sync"

// arrivals lends memory to gRPC for what it reads from a connection, one frame of HTTP/2 at a time.
// Its own pool clears what it lends, which takes a tenth of all the time; what is read is written
// over it anyway.
type arrivals struct{ pool sync.Pool }

// arrivalSize is the most that gRPC reads at once: the largest frame of HTTP/2 that it lets others
// send.
const arrivalSize = 16 << 10

// Get implements mem.BufferPool.
func (a *arrivals) Get(n int) *[]byte {
	if n > arrivalSize {
		b := make([]byte, n)
		return &b
	}
	b, ok := a.pool.Get().(*[]byte)
	if !ok {
		fresh := make([]byte, arrivalSize)
		b = &fresh
	}
	*b = (*b)[:n]
	return b
}

// Put implements mem.BufferPool.
func (a *arrivals) Put(b *[]byte) {
	if cap(*b) == arrivalSize {
		a.pool.Put(b)
	}
}
