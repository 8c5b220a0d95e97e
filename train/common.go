package train

import (
	"sync"

	"fspda/device"
	"fspda/dist"
)

// commons are the vectors that all agents of the process share in an iteration in which everybody
// hears everybody. Of each number the newest is kept. An agent that asks for an older one, because
// it fell behind in iterations in which it had nobody to wait for, gets one for itself.
type commons struct {
	pool *dist.Pool
	dim  int

	mu     sync.Mutex
	newest map[int]*common
}

// common is a vector of iteration t.
type common struct {
	t      int
	buffer *dist.Buffer
	filled sync.Once
}

// get lends a vector of iteration t, and has it filled if nobody has. The caller is one more holder
// of the buffer.
func (c *commons) get(t, which int, fill func(dst device.Vector)) *dist.Buffer {
	v := c.at(t, which)
	v.filled.Do(func() { fill(v.buffer.V) })
	return v.buffer
}

func (c *commons) at(t, which int) *common {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.newest[which]
	if v != nil && v.t == t {
		v.buffer.Retain(1)
		return v
	}
	fresh := &common{t: t, buffer: c.pool.Get(c.dim)}
	if v == nil || v.t < t {
		if v != nil {
			v.buffer.Release()
		}
		fresh.buffer.Retain(1)
		c.newest[which] = fresh
	}
	return fresh
}
