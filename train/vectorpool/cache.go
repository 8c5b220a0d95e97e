package vectorpool

import (
	"sync"

	"fspda/device"
	"fspda/dist"
)

// Cache holds vectors that all agents of a device read in an iteration in which every agent receives
// from every other. Of each number the newest is kept. An agent that asks for an older one, because
// it fell behind in iterations without edges, gets one of its own.
type Cache struct {
	pool *dist.Pool
	dim  int

	mu     sync.Mutex
	newest map[int]*entry
}

// NewCache makes a cache of vectors of length dim.
func NewCache(pool *dist.Pool, dim int) *Cache {
	return &Cache{pool: pool, dim: dim, newest: map[int]*entry{}}
}

// entry is a vector of iteration t.
type entry struct {
	t      int
	buffer *dist.Buffer
	filled sync.Once
}

// Get returns vector which of iteration t, which the first caller fills. Each caller must release
// the buffer.
func (c *Cache) Get(t, which int, fill func(dst device.Vector)) *dist.Buffer {
	e := c.at(t, which)
	e.filled.Do(func() { fill(e.buffer.V) })
	return e.buffer
}

func (c *Cache) at(t, which int) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.newest[which]
	if e != nil && e.t == t {
		e.buffer.Retain(1)
		return e
	}
	fresh := &entry{t: t, buffer: c.pool.Get(c.dim)}
	if e == nil || e.t < t {
		if e != nil {
			e.buffer.Release()
		}
		fresh.buffer.Retain(1)
		c.newest[which] = fresh
	}
	return fresh
}
