package lend

import (
	"sync"

	"fspda/device"
	"fspda/dist"
)

// Shared are the vectors that all agents of a worker share in an iteration in which every
// agent receives from every other. Of each number the newest is kept. An agent that asks for an
// older one, because it fell behind in iterations without edges, gets one of its own.
type Shared struct {
	pool *dist.Pool
	dim  int

	mu     sync.Mutex
	newest map[int]*sharedVector
}

// NewShared makes shared vectors of so many numbers.
func NewShared(pool *dist.Pool, dim int) *Shared {
	return &Shared{pool: pool, dim: dim, newest: map[int]*sharedVector{}}
}

// sharedVector is a vector of iteration t.
type sharedVector struct {
	t      int
	buffer *dist.Buffer
	filled sync.Once
}

// Get returns a vector of iteration t, which the first caller fills. Each caller must release the
// buffer.
func (c *Shared) Get(t, which int, fill func(dst device.Vector)) *dist.Buffer {
	v := c.at(t, which)
	v.filled.Do(func() { fill(v.buffer.V) })
	return v.buffer
}

func (c *Shared) at(t, which int) *sharedVector {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.newest[which]
	if v != nil && v.t == t {
		v.buffer.Retain(1)
		return v
	}
	fresh := &sharedVector{t: t, buffer: c.pool.Get(c.dim)}
	if v == nil || v.t < t {
		if v != nil {
			v.buffer.Release()
		}
		fresh.buffer.Retain(1)
		c.newest[which] = fresh
	}
	return fresh
}
