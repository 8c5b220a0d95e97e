package train

import (
	"slices"
	"sync"

	"fspda/device"
	"fspda/dist"
	"fspda/train/memory"
)

// masks holds the coordinates that agents of one worker share: both ends of an edge, and all
// receivers of a broadcast, use the same ones in an iteration. The first agent that needs a mask
// draws it. A device that draws masks itself draws several at a time, some iterations ahead.
type masks struct {
	dev          device.Device
	distribution dist.Mask
	drawer       device.IndexSampler // nil: masks are drawn one by one, on the host
	sampling     device.Sampling     // how drawer draws
	coming       func(dst []comingMask, t int) []comingMask
	scratch      sync.Pool // *[]uint32 to draw in

	mu       sync.Mutex
	drawn    map[maskKey]*mask // masks that some agent has still to release
	idle     []*mask           // released masks, whose memory is reused
	next     int               // the first iteration whose masks the device has not drawn
	list     []comingMask
	indexes  []device.Index
	counters []uint64
}

// maskKey is an iteration and an edge, the agent with the lower number first; or an iteration and
// twice the agent that broadcasts; or an iteration and twice agent 0, for an all-reduce.
type maskKey struct{ t, i, j int }

// comingMask is a mask that users agents of the worker will ask for.
type comingMask struct {
	maskKey
	users int
}

// mask is the coordinates of one key.
type mask struct {
	key   maskKey
	index device.Index
	users int // agents that have still to release it
	fill  sync.Once
}

// mostAhead is the most iterations of the masks that a device draws at a time.
const mostAhead = 64

// newMasks makes the masks of a worker. coming lists the masks of an iteration; nil: they are not
// known.
func newMasks(dev device.Device, distribution dist.Mask, coming func(dst []comingMask, t int) []comingMask) *masks {
	m := &masks{dev: dev, distribution: distribution, coming: coming, drawn: map[maskKey]*mask{},
		scratch: sync.Pool{New: func() any { return new([]uint32) }}}
	if sampling, ok := distribution.Sampling(); ok && coming != nil {
		m.drawer, m.sampling = dev.Features().Sampler, sampling
	}
	return m
}

// get returns the mask of a key. Each user of the worker asks for it once, and releases it
// afterwards.
func (m *masks) get(key comingMask) *mask {
	x := m.at(key)
	x.fill.Do(func() {
		scratch := m.scratch.Get().(*[]uint32)
		*scratch = m.distribution.Draw(*scratch, key.t, key.i, key.j)
		x.index = m.dev.NewIndex(*scratch, x.index)
		m.scratch.Put(scratch)
	})
	return x
}

// at returns the mask of a key: an existing one, or one that is still to be drawn.
func (m *masks) at(key comingMask) *mask {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drawer != nil && key.t >= m.next {
		m.reach(key.t)
	}
	x := m.drawn[key.maskKey]
	if x == nil {
		x = m.fresh(key, 0)
	}
	return x
}

// fresh adds a mask that is still to be drawn, in the memory of the one that was released first if
// more than some are. The caller holds the lock.
func (m *masks) fresh(key comingMask, some int) *mask {
	x := &mask{}
	if len(m.idle) > some {
		x = m.idle[0]
		m.idle = slices.Delete(m.idle, 0, 1)
	}
	x.key, x.users, x.fill = key.maskKey, key.users, sync.Once{}
	m.drawn[x.key] = x
	return x
}

// reach has the device draw the masks of the iterations up to t, and some more. The caller holds
// the lock.
func (m *masks) reach(t int) {
	m.list = m.list[:0]
	most, some := memory.DrawnMasks(m.distribution.Len())
	for ; m.next <= t || len(m.list) < most && m.next < t+mostAhead; m.next++ {
		m.list = m.coming(m.list, m.next)
	}
	m.indexes, m.counters = m.indexes[:0], m.counters[:0]
	for _, key := range m.list {
		m.indexes = append(m.indexes, m.fresh(key, some).index)
		m.counters = append(m.counters, m.distribution.Counter(key.t, key.i, key.j))
	}
	m.drawer.SampleIndexes(m.indexes, m.sampling, m.counters)
	for k, key := range m.list {
		x := m.drawn[key.maskKey]
		x.index = m.indexes[k]
		x.fill.Do(func() {})
	}
}

func (m *masks) release(all []*mask) {
	if len(all) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range all {
		if x.users--; x.users == 0 {
			delete(m.drawn, x.key)
			m.idle = append(m.idle, x)
		}
	}
}

// edgeMask returns the coordinates that travel between the agent and a peer in iteration t, until
// the end of the iteration.
func (x *exchange) edgeMask(t, peer int) device.Index {
	users := x.run.countOn(x.worker, t, x.id, peer)
	return x.borrowMask(comingMask{maskKey{t, min(x.id, peer), max(x.id, peer)}, users})
}

// broadcastMask returns the coordinates of an agent's broadcast in iteration t, until the end of
// the iteration.
func (x *exchange) broadcastMask(t, sender int) device.Index {
	return x.borrowMask(comingMask{maskKey{t, sender, sender}, x.run.holders(x.worker, t, sender)})
}

func (x *exchange) borrowMask(key comingMask) device.Index {
	m := x.worker.masks.get(key)
	x.held = append(x.held, m)
	return m.index
}

// countOn counts the agents that are on worker w and members in iteration t.
func (r *run) countOn(w *worker, t int, agents ...int) (n int) {
	for _, agent := range agents {
		if r.group.Local(agent) && r.workerOf(agent) == w && r.setup.Members.Present(agent, t) {
			n++
		}
	}
	return n
}

// holders is the number of agents of a worker that have an agent's broadcast: the sender itself and
// its neighbours.
func (r *run) holders(w *worker, t, sender int) int {
	return r.countOn(w, t, sender) + r.countOn(w, t, r.setup.Graph.Neighbours(sender)...)
}

// comingMasks returns a function that lists the masks of an iteration for the agents of a worker.
func (r *run) comingMasks(w *worker) func(dst []comingMask, t int) []comingMask {
	if r.setup.Asynchronous() || r.setup.DropsSilent() { // who will ask is not known
		return nil
	}
	if r.setup.AllReduces() {
		return func(dst []comingMask, t int) []comingMask {
			if r.setup.AllReducesAt(t) && !r.setup.Whole(t) {
				dst = append(dst, r.commonMask(w, t))
			}
			return dst
		}
	}
	if r.setup.Broadcasts() {
		return r.broadcastMasks(w)
	}
	var events []dist.Event
	return func(dst []comingMask, t int) []comingMask {
		events = r.setup.Process.Active(events, t)
		for _, e := range events {
			if n := r.countOn(w, t, e.From, e.To); n > 0 {
				dst = append(dst, comingMask{maskKey{t, min(e.From, e.To), max(e.From, e.To)}, n})
			}
		}
		return dst
	}
}

// broadcastMasks is comingMasks for an algorithm of broadcasts.
func (r *run) broadcastMasks(w *worker) func(dst []comingMask, t int) []comingMask {
	var senders []int
	return func(dst []comingMask, t int) []comingMask {
		senders = r.broadcasters(senders, t)
		for _, i := range senders {
			if n := r.holders(w, t, i); n > 0 {
				dst = append(dst, comingMask{maskKey{t, i, i}, n})
			}
		}
		return dst
	}
}
