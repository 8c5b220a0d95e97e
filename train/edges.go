package train

import (
	"slices"

	"fspda/dist"
	"fspda/train/membership"
)

// activeEdges is the edges of one iteration and their weights. Agents borrow one for a moment, from
// a pool: an agent that finds the edges of its iteration there need not draw them again, and memory
// does not grow with the square of the number of agents, as one per agent would.
type activeEdges struct {
	t       int // iteration of the edges; -1: none yet
	events  []dist.Event
	weights *dist.ActiveMixing
	arcs    []dist.Arc // arcs of a directed run
	out     []int      // numbers of the arcs that leave each agent
}

// edgesAt borrows the edges of iteration t. The caller puts them back into run.edges.
func (r *run) edgesAt(t int) *activeEdges {
	e, _ := r.edges.Get().(*activeEdges)
	if e == nil {
		e = &activeEdges{t: -1, weights: dist.NewActiveMixing(r.setup.Process, r.setup.Graph.N)}
	}
	if e.t != t {
		e.events = r.setup.Process.Active(e.events, t)
		e.weights.Set(e.events, t)
		if d := r.setup.Directed(); d != nil {
			e.setArcs(d, r.setup.Members, r.setup.Graph.N, t)
		}
		e.t = t
	}
	return e
}

// setArcs sets the arcs of iteration t among the members of n agents.
func (e *activeEdges) setArcs(d dist.Directed, members *membership.Log, n, t int) {
	e.arcs = slices.DeleteFunc(d.Arcs(e.arcs, t), func(a dist.Arc) bool {
		return !members.Present(a.From, t) || !members.Present(a.To, t)
	})
	e.out = slices.Grow(e.out[:0], n)[:n]
	clear(e.out)
	for _, a := range e.arcs {
		e.out[a.From]++
	}
}

// share is the fraction of its values that an agent sends to each of its receivers, and keeps.
func (e *activeEdges) share(agent int) float64 { return 1 / float64(1+e.out[agent]) }
