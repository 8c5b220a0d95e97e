package train

import "fspda/dist"

// active is the edges of one iteration, and their weights. An agent needs it for a moment only: few
// of them go round among all agents, and one who finds that the last agent was at the same
// iteration need not draw the edges anew. With as many agents as edges that is most of the work,
// and the memory of one for each agent would grow with their square.
type active struct {
	t       int // -1: none yet
	events  []dist.Event
	weights *dist.ActiveMixing
}

// active borrows the edges of iteration t. The caller puts them back into actives.
func (r *run) active(t int) *active {
	now, _ := r.actives.Get().(*active)
	if now == nil {
		now = &active{t: -1, weights: dist.NewActiveMixing(r.setup.Graph.N)}
	}
	if now.t != t {
		now.events = r.setup.Process.Active(now.events, t)
		now.weights.Set(now.events)
		now.t = t
	}
	return now
}
