package train

import (
	"sync"

	"fspda/device"
	"fspda/dist"
)

// masks are the coordinates that agents of one place share: both ends of an edge, and all who hear
// a broadcast, take the same ones in an iteration, and whoever comes first draws them. A device
// that draws by itself does so for several at a time, some iterations ahead.
type masks struct {
	dev    device.Device
	law    dist.Mask
	drawer device.IndexSampler // nil: masks are drawn one by one, on the host
	coming func(dst []comingMask, t int) []comingMask

	mu       sync.Mutex
	drawn    map[maskKey]*mask // that somebody has still to let go of
	idle     []*mask           // memory for more
	next     int               // the first iteration that drawer has not come to
	list     []comingMask
	indexes  []device.Index
	counters []uint64
}

// maskKey is an iteration and an edge, the agent with the lower number first, or an agent that
// speaks, twice.
type maskKey struct{ t, i, j int }

// comingMask is a mask that so many agents of the place will ask for.
type comingMask struct {
	maskKey
	users int
}

// mask is the coordinates of an iteration at an edge.
type mask struct {
	key   maskKey
	index device.Index
	users int // who have still to let go of it
	fill  sync.Once
}

// A device draws up to drawnAtOnce masks in one go, if there are as many within mostAhead
// iterations and they have no more coordinates together than drawnTogether: long masks would take
// memory for nothing.
const (
	drawnAtOnce   = 16
	mostAhead     = 64
	drawnTogether = 1 << 20
)

// newMasks are the masks of a place, of which coming lists those of an iteration.
func newMasks(dev device.Device, law dist.Mask, coming func(dst []comingMask, t int) []comingMask) *masks {
	m := &masks{dev: dev, law: law, coming: coming, drawn: map[maskKey]*mask{}}
	if _, ok := law.(dist.DeviceMask); ok {
		m.drawer, _ = dev.(device.IndexSampler)
	}
	return m
}

// get lends the coordinates of a key. All users of the place ask for it once, and let go of it
// afterwards. scratch is memory to draw in, which is returned.
func (m *masks) get(key comingMask, scratch []uint32) (*mask, []uint32) {
	x := m.at(key)
	x.fill.Do(func() {
		scratch = m.law.Draw(scratch, key.t, key.i, key.j)
		x.index = m.dev.NewIndex(scratch, x.index)
	})
	return x, scratch
}

// at is the mask of a key: that which is there, or one that is still to be drawn.
func (m *masks) at(key comingMask) *mask {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drawer != nil && key.t >= m.next {
		m.reach(key.t)
	}
	x := m.drawn[key.maskKey]
	if x == nil {
		x = m.fresh(key)
	}
	return x
}

// fresh is a mask that is still to be drawn, in the memory of an earlier one where there is some.
// The caller holds the lock.
func (m *masks) fresh(key comingMask) *mask {
	x := &mask{}
	if n := len(m.idle); n > 0 {
		x, m.idle = m.idle[n-1], m.idle[:n-1]
	}
	x.key, x.users, x.fill = key.maskKey, key.users, sync.Once{}
	m.drawn[x.key] = x
	return x
}

// reach has the device draw the masks of the iterations up to t, and some more. The caller holds
// the lock.
func (m *masks) reach(t int) {
	m.list = m.list[:0]
	most := min(drawnAtOnce, drawnTogether/max(1, m.law.Len()))
	for ; m.next <= t || len(m.list) < most && m.next < t+mostAhead; m.next++ {
		m.list = m.coming(m.list, m.next)
	}
	law := m.law.(dist.DeviceMask)
	m.indexes, m.counters = m.indexes[:0], m.counters[:0]
	for _, key := range m.list {
		m.indexes = append(m.indexes, m.fresh(key).index)
		m.counters = append(m.counters, law.Counter(key.t, key.i, key.j))
	}
	m.drawer.SampleIndexes(m.indexes, law.Sampling(), m.counters)
	for k, key := range m.list {
		x := m.drawn[key.maskKey]
		x.index = m.indexes[k]
		x.fill.Do(func() {})
	}
}

// release ends the hold of one user on each of these.
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

// drawFrom says at which iteration the run begins.
func (r *run) drawFrom(first int) {
	for _, p := range r.workers {
		p.masks.next = first
	}
}

// edgeMask is the coordinates that travel between the agent and a peer in iteration t. It is lent for
// the round.
func (x *exchange) edgeMask(t, peer int) device.Index {
	return x.borrowMask(comingMask{maskKey{t, min(x.id, peer), max(x.id, peer)}, x.run.ends(x.worker, x.id, peer)})
}

// broadcastMask is the coordinates of what an agent speaks in iteration t. It is lent for the round.
func (x *exchange) broadcastMask(t, speaker int) device.Index {
	return x.borrowMask(comingMask{maskKey{t, speaker, speaker}, x.run.hearers(x.worker, speaker)})
}

func (x *exchange) borrowMask(key comingMask) device.Index {
	var m *mask
	m, x.coords = x.worker.masks.get(key, x.coords)
	x.held = append(x.held, m)
	return m.index
}

// ends is how many of an edge's ends are at a place.
func (r *run) ends(p *worker, i, j int) int {
	n := 0
	for _, agent := range [2]int{i, j} {
		if r.livesAt(p, agent) {
			n++
		}
	}
	return n
}

// livesAt tells whether an agent is at a place.
func (r *run) livesAt(p *worker, agent int) bool {
	return r.group.Local(agent) && r.workerOf(agent) == p
}

// hearers is how many agents of a place have what an agent speaks: itself and its neighbours.
func (r *run) hearers(p *worker, speaker int) int {
	n := 0
	if r.livesAt(p, speaker) {
		n++
	}
	for _, agent := range r.setup.Graph.Neighbours(speaker) {
		if r.livesAt(p, agent) {
			n++
		}
	}
	return n
}

// comingMasks lists the masks of an iteration for the agents of a place.
func (r *run) comingMasks(p *worker) func(dst []comingMask, t int) []comingMask {
	if r.setup.Compressor != nil {
		return r.spokenMasks(p)
	}
	var events []dist.Event
	return func(dst []comingMask, t int) []comingMask {
		events = r.setup.Process.Active(events, t)
		for _, e := range events {
			if n := r.ends(p, e.From, e.To); n > 0 {
				dst = append(dst, comingMask{maskKey{t, min(e.From, e.To), max(e.From, e.To)}, n})
			}
		}
		return dst
	}
}

// spokenMasks is comingMasks for an algorithm of speakers.
func (r *run) spokenMasks(p *worker) func(dst []comingMask, t int) []comingMask {
	var speakers []int
	return func(dst []comingMask, t int) []comingMask {
		speakers = r.speakers(speakers, t)
		for _, i := range speakers {
			if n := r.hearers(p, i); n > 0 {
				dst = append(dst, comingMask{maskKey{t, i, i}, n})
			}
		}
		return dst
	}
}
