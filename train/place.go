package train

import (
	"fmt"

	"fspda/device"
	"fspda/dist"
)

// Place is a device, and the network on it.
type Place struct {
	Device device.Device
	Model  Model
}

// place is where some of the agents live: a device, and what belongs to it.
type place struct {
	Place
	pool    *dist.Pool
	commons *commons
	gate    chan struct{} // room for as many gradients as are computed at once; nil: no limit
	masks   *masks
}

// settleIn makes the places of a run, of which the first is that of its evaluations.
func (r *run) settleIn(all ...Place) {
	for _, p := range all {
		made := &place{Place: p, pool: dist.NewPool(p.Device)}
		made.commons = &commons{pool: made.pool, dim: r.setup.Dim, newest: map[int]*common{}}
		made.gate = gateOf(r.setup, p.Device)
		made.masks = newMasks(p.Device, r.setup.Mask, r.comingMasks(made))
		r.places = append(r.places, made)
	}
}

// places are where evaluations are made: everywhere.
func places(all []*place) (bare []Place) {
	for _, p := range all {
		bare = append(bare, p.Place)
	}
	return bare
}

// gateOf lets through as many large gradients as a device computes at once.
func gateOf(s *Setup, dev device.Device) chan struct{} {
	if s.program < largeProgram {
		return nil
	}
	if _, ok := dev.(separate); ok {
		return make(chan struct{}, atOnceOnCard)
	}
	return make(chan struct{}, s.Threads)
}

// placeOf is where an agent lives: agents are dealt out, one after the other. An agent that has the
// process for itself is at the first place.
func (r *run) placeOf(agent int) *place {
	switch {
	case len(r.places) == 0: // it is made by hand
		r.settleIn(Place{r.dev, r.model})
		fallthrough
	case r.member != nil:
		return r.places[0]
	}
	return r.places[agent%len(r.places)]
}

// neighbour is a device that takes over vectors of others of its kind without the host.
type neighbour interface {
	device.Device
	// Fetch copies src, which is of another device, to dst, and reports whether it can. The lengths
	// are equal. When it returns, what is done next with either vector on its device comes after
	// the copy.
	Fetch(dst, src device.Vector) bool
}

// home returns what was heard as a buffer on the agent's device, and lets go of one that is
// elsewhere.
func (a *agent) home(b *dist.Buffer) *dist.Buffer {
	from := b.Device()
	if from == a.dev {
		return b
	}
	own := a.place.pool.Get(b.V.Len())
	own.Coords = append(own.Coords, b.Coords...)
	if n, ok := a.dev.(neighbour); !ok || !n.Fetch(own.V, b.V) {
		if cap(a.host) < b.V.Len() {
			a.host = make([]float32, b.V.Len())
		}
		host := a.host[:b.V.Len()]
		from.Read(host, b.V)
		a.dev.Write(own.V, host)
	}
	b.Release()
	return own
}

// checkPlaces panics where the places do not have one network.
func checkPlaces(all []Place) {
	for _, p := range all[1:] {
		if p.Model.Dim() != all[0].Model.Dim() {
			panic(fmt.Sprintf("train: networks of %d and %d parameters, want one network on all devices",
				all[0].Model.Dim(), p.Model.Dim()))
		}
	}
}
