package vectorpool

import (
	"sync"

	"fspda/device"
	"fspda/dist"
)

// Cache computes vectors once for all agents of a device, for iterations in which every agent
// receives from every other. Vectors are numbered, and the Cache keeps one iteration's vector for each
// number. An agent that fell behind in iterations without edges asks for an earlier iteration: it
// gets a vector of its own.
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

// Get returns the vector with number which of iteration t. The first caller fills it. Each caller
// must release the buffer.
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
