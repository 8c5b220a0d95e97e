package dist

// full activates all edges.
type full struct{ g *Graph }

func (full) String() string        { return "full" }
func (full) Rate(edge int) float64 { return 1 }

func (p full) Active(dst []Event, t int) []Event {
	checkTime(t)
	dst = dst[:0]
	for k := range p.g.Edges {
		dst = append(dst, p.g.event(k))
	}
	return dst
}

// empty activates no edge.
type empty struct{}

func (empty) String() string                    { return "empty" }
func (empty) Rate(edge int) float64             { return 0 }
func (empty) Active(dst []Event, t int) []Event { checkTime(t); return dst[:0] }

// periodic activates all edges at the last iteration of each group of tau.
type periodic struct {
	g   *Graph
	tau int
}

func (p periodic) String() string        { return withInt("periodic", p.tau) }
func (p periodic) Rate(edge int) float64 { return 1 / float64(p.tau) }

func (p periodic) Active(dst []Event, t int) []Event {
	checkTime(t)
	if (t+1)%p.tau != 0 {
		return dst[:0]
	}
	return full{p.g}.Active(dst, t)
}
