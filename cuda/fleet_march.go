package cuda

import "fspda/cuda/kernels"

// route is the steps of a formation in a march. Without phases it does not march.
type route struct {
	phases      [][]kernels.Call
	done        int // the phase in which the results can be collected
	steps, args int
}

// march has a crew compute in the march that is collected. It is false where that is not for this
// crew: batches that come to slots are the business of two streams, and 16 bits have kernels of
// their own.
func (f *fleet) march(o *owner, crew []*passage) (marched bool, err error) {
	m := o.march
	if m == nil || f.short != nil || crew[0].store == nil || float64(f.code.FLOPs) > marchFLOPs {
		return false, nil
	}
	if f.lacksRoom() { // what is collected may still work in memory that is free by now
		if err := m.halt(); err != nil {
			return false, err
		}
		if err := f.makeRoom(o); err != nil {
			return false, err
		}
	}
	s := roomShape{f.code.Batch, len(crew)}
	r, err := f.routeOf(f.formation(crew), s)
	if err != nil || r.phases == nil {
		return false, err
	}
	limit := len(r.phases) + 1
	if f.own.march == m.number {
		limit += f.own.free
	}
	if fits, err := m.reserve(limit, r.steps, r.args, s.bytes()); !fits || err != nil {
		return false, err
	}
	room, at := m.list.Data(s.bytes())
	f.describe(room, s, crew)
	b, err := f.takeBerth(o)
	if err != nil {
		return false, err
	}
	f.fallIn(m, r, at, b, len(crew))
	b.left = len(crew)
	for i, p := range crew {
		p.berth, p.place = b, i
	}
	return true, nil
}

// fallIn adds the steps of a route to the march, behind what the fleet does in it already.
func (f *fleet) fallIn(m *marcher, r *route, room kernels.Address, b *berth, agents int) {
	at := m.base
	if f.own.march == m.number {
		at = max(at, f.own.free)
	}
	for i, calls := range r.phases {
		for _, c := range calls {
			m.list.AddWith(at+i, c, room)
		}
	}
	f.own.march, f.own.free = m.number, at+len(r.phases)
	if f.results.bytes() > 0 {
		m.list.Add(at+r.done, f.collect(b.results.address(), agents))
		f.own.free = max(f.own.free, at+r.done+1)
	}
}

// routeOf is the steps of a formation, whose room is nowhere yet.
func (f *fleet) routeOf(k formation, s roomShape) (*route, error) {
	if r := f.own.marches[k]; r != nil {
		return r, nil
	}
	if len(f.own.marches) >= mostGraphs {
		clear(f.own.marches)
	}
	phases, done, err := f.crewed(k, kernels.Nowhere, s).Phases(f.code)
	if err != nil {
		return nil, err
	}
	collected := f.collect(0, s.agents)
	r := &route{phases: phases, done: done, steps: 1, args: len(collected.Args)}
	for _, calls := range phases {
		for _, c := range calls {
			if !c.Marches() {
				r.phases = nil
			}
			r.steps, r.args = r.steps+1, r.args+len(c.Args)
		}
	}
	f.own.marches[k] = r
	return r, nil
}
