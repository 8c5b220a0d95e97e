package executor

import (
	"sync"

	"fspda/cuda/driver"
)

// garbage is memory, graphs, events and objects that finalisers have given up. The executor reuses
// or destroys it when it next needs memory or an event.
type garbage struct {
	sync.Mutex
	blocks  []Block
	graphs  []driver.GraphExec
	closers []Closer
	events  []driver.Event
}

// Closer is an object of NVIDIA's libraries: a handle, or the description of a convolution or
// product.
type Closer interface{ Close() error }

// Track has a library object closed with the executor at the latest.
func (ex *Executor) Track(x Closer) { ex.closers[x] = true }

// CollectGarbage takes over everything that finalisers have given up.
func (ex *Executor) CollectGarbage() {
	g := &ex.garbage
	g.Lock()
	defer g.Unlock()
	for _, b := range g.blocks {
		ex.PutBlock(b)
	}
	for _, e := range g.graphs {
		ex.Fail(ex.destroyGraph(e))
		delete(ex.graphs, e)
	}
	for _, x := range g.closers {
		ex.Fail(x.Close())
		delete(ex.closers, x)
	}
	ex.events.idle = append(ex.events.idle, g.events...)
	g.blocks, g.graphs, g.closers, g.events = g.blocks[:0], g.graphs[:0], g.closers[:0], g.events[:0]
}

// Discard gives up a block, which may be none. As all discards it never waits, so that finalisers
// may call it.
func (ex *Executor) Discard(b Block) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	if b.Size > 0 {
		ex.garbage.blocks = append(ex.garbage.blocks, b)
	}
}

// DiscardCloser gives up a library object.
func (ex *Executor) DiscardCloser(x Closer) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	ex.garbage.closers = append(ex.garbage.closers, x)
}

// DiscardEvents gives up events, of which 0 is none.
func (ex *Executor) DiscardEvents(events ...driver.Event) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	for _, e := range events {
		if e != 0 {
			ex.garbage.events = append(ex.garbage.events, e)
		}
	}
}
