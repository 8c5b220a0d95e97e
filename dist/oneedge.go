package dist

// oneEdge activates one edge, uniform.
type oneEdge struct{ edgeSampler }

func (oneEdge) String() string          { return "one-edge" }
func (p oneEdge) Rate(edge int) float64 { return 1 / float64(len(p.g.Edges)) }

// Active draws the edge, then its orientation. Its cost is the same for every t: every agent calls
// it at every iteration.
func (p oneEdge) Active(dst []Event, t int) []Event {
	if len(p.g.Edges) == 0 {
		return dst[:0]
	}
	s := p.at(t)
	k := s.IntN(len(p.g.Edges))
	e := p.g.event(k)
	if s.Uint64()>>63 == 1 {
		e.From, e.To = e.To, e.From
	}
	return append(dst[:0], e)
}

// roundRobin activates an edge between agent t mod n and one of its neighbours.
type roundRobin struct{ edgeSampler }

func (roundRobin) String() string { return "one-edge-round-robin" }

// Rate returns (1/n)(1/deg_i + 1/deg_j).
func (p roundRobin) Rate(edge int) float64 {
	e := p.g.Edges[edge]
	return (1/float64(p.g.Degree(e.I)) + 1/float64(p.g.Degree(e.J))) / float64(p.g.N)
}

func (p roundRobin) Active(dst []Event, t int) []Event {
	if len(p.g.Edges) == 0 {
		return dst[:0]
	}
	s := p.at(t)
	i := t % p.g.N
	incident := p.g.Incident(i)
	return append(dst[:0], p.g.eventFrom(incident[s.IntN(len(incident))], i))
}
