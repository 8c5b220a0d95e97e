package train

import (
	"sync"

	"fspda/device"
	"fspda/dist"
)

// masks are the coordinates that agents of one place share: both ends of an edge take the same ones in an iteration, and whoever comes first
// draws them.
type masks struct {
	dev device.Device
	law dist.Mask

	mu    sync.Mutex
	drawn map[maskKey]*mask // that somebody has still to let go of
	idle  []*mask           // memory for more
}

// maskKey is an iteration and an edge: agent i is the smaller one.
type maskKey struct{ t, i, j int }

// mask is the coordinates of an iteration at an edge.
type mask struct {
	key   maskKey
	index device.Index
	users int // who have still to let go of it
	fill  sync.Once
}

func newMasks(dev device.Device, law dist.Mask) *masks {
	return &masks{dev: dev, law: law, drawn: map[maskKey]*mask{}}
}

// get lends the coordinates of an iteration at the edge between two agents, of whom so many are of this place: each of them asks once, and lets
// go of it afterwards. scratch is memory to draw in, which is returned.
func (m *masks) get(t, i, j, users int, scratch []uint32) (*mask, []uint32) {
	x := m.at(maskKey{t, min(i, j), max(i, j)}, users)
	x.fill.Do(func() {
		scratch = m.law.Draw(scratch, t, i, j)
		x.index = m.dev.NewIndex(scratch, x.index)
	})
	return x, scratch
}

// at is the mask of a key: that which is there, or one that is still to be drawn.
func (m *masks) at(key maskKey, users int) *mask {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.drawn[key]
	if x == nil {
		x = m.fresh()
		x.key, x.users, x.fill = key, users, sync.Once{}
		m.drawn[key] = x
	}
	return x
}

// fresh is a mask that nobody has, in the memory of an earlier one where there is some. The caller holds the lock.
func (m *masks) fresh() *mask {
	n := len(m.idle)
	if n == 0 {
		return &mask{}
	}
	x := m.idle[n-1]
	m.idle = m.idle[:n-1]
	return x
}

// letGo ends the hold of one user on each of these.
func (m *masks) letGo(all []*mask) {
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

// mask is the coordinates that travel between the agent and a peer in iteration t. It is lent for the round.
func (a *agent) mask(t, peer int) device.Index {
	users := 1
	if a.run.member == nil && a.run.placeOf(peer) == a.place {
		users = 2
	}
	var x *mask
	x, a.coords = a.place.masks.get(t, a.id, peer, users, a.coords)
	a.lent = append(a.lent, x)
	return x.index
}
