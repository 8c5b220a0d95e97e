package nats

import "sync"

// readBufferPool provides gRPC with memory for reading from a connection, one HTTP/2 frame at a
// time. Unlike gRPC's own pool it does not zero the memory, which would take a tenth of the total
// time; reading overwrites it anyway.
type readBufferPool struct{ pool sync.Pool }

// readBufferSize is the size of gRPC's largest read: the largest HTTP/2 frame that it allows.
const readBufferSize = 16 << 10

// Get implements mem.BufferPool.
func (a *readBufferPool) Get(n int) *[]byte {
	if n > readBufferSize {
		b := make([]byte, n)
		return &b
	}
	b, ok := a.pool.Get().(*[]byte)
	if !ok {
		fresh := make([]byte, readBufferSize)
		b = &fresh
	}
	*b = (*b)[:n]
	return b
}

// Put implements mem.BufferPool.
func (a *readBufferPool) Put(b *[]byte) {
	if cap(*b) == readBufferSize {
		a.pool.Put(b)
	}
}
