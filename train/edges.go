package train

import "fspda/dist"

// activeEdges is the edges of one iteration and their weights. Agents borrow one for a moment, from
// a pool: an agent that finds the edges of its iteration there need not draw them again, and memory
// does not grow with the square of the number of agents, as one per agent would.
type activeEdges struct {
	t       int // -1: none yet
	events  []dist.Event
	weights *dist.ActiveMixing
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
		e.t = t
	}
	return e
}
