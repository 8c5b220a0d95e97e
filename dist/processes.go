package dist

// process is a Process of functions.
type process struct {
	spec string
	rate func(edge int) float64
	// active appends the edges active at iteration t >= 0 to dst, which is empty
	active func(dst []Event, t int) []Event
}

func (p process) String() string        { return p.spec }
func (p process) Rate(edge int) float64 { return p.rate(edge) }
func (p process) Active(dst []Event, t int) []Event {
	checkTime(t)
	return p.active(dst[:0], t)
}

// Weighted, Weight, Period, Broadcasts, Senders and SendRate are those of a process of edges
// without weights of their own that do not repeat.
func (process) Weighted() bool                 { return false }
func (process) Weight(Event, int) float64      { return 0 }
func (process) Period() int                    { return 0 }
func (process) Broadcasts() bool               { return false }
func (process) Directed() Directed             { return nil }
func (process) Senders(dst []int, _ int) []int { return dst[:0] }
func (process) SendRate() float64              { return 0 }

// each returns the rate of a process under which all edges have the same.
func each(rate float64) func(edge int) float64 { return func(int) float64 { return rate } }

func (g *Graph) all(dst []Event, _ int) []Event {
	for k := range g.Edges {
		dst = append(dst, g.event(k))
	}
	return dst
}

func none(dst []Event, _ int) []Event { return dst }

// last activates all edges at the last iteration of each group of tau.
func (g *Graph) last(tau int) func(dst []Event, t int) []Event {
	return func(dst []Event, t int) []Event {
		if (t+1)%tau != 0 {
			return dst
		}
		return g.all(dst, t)
	}
}

// together activates all edges with probability p, otherwise none. All agents share the coin, as
// ProxSkip requires.
func (l edgeSampler) together(p float64) func(dst []Event, t int) []Event {
	return func(dst []Event, t int) []Event {
		if s := l.at(t); s.Float64() >= p {
			return dst
		}
		return l.g.all(dst, t)
	}
}

// one activates one edge, uniform. It draws the edge, then its orientation. Its cost is the same
// for every t: every agent calls it at every iteration.
func (l edgeSampler) one(dst []Event, t int) []Event {
	if len(l.g.Edges) == 0 {
		return dst
	}
	s := l.at(t)
	k := s.IntN(len(l.g.Edges))
	e := l.g.event(k)
	if s.Uint64()>>63 == 1 {
		e.From, e.To = e.To, e.From
	}
	return append(dst, e)
}

// inTurn activates an edge between agent t mod n and one of its neighbours.
func (l edgeSampler) inTurn(dst []Event, t int) []Event {
	if len(l.g.Edges) == 0 {
		return dst
	}
	s := l.at(t)
	i := t % l.g.N
	incident := l.g.Incident(i)
	return append(dst, l.g.eventFrom(incident[s.IntN(len(incident))], i))
}

// inTurnRate returns (1/n)(1/deg_i + 1/deg_j).
func (l edgeSampler) inTurnRate(edge int) float64 {
	e := l.g.Edges[edge]
	return (1/float64(l.g.Degree(e.I)) + 1/float64(l.g.Degree(e.J))) / float64(l.g.N)
}

// exactly activates k different edges, uniform. It visits the edges once and takes each with
// probability (number still missing)/(number left): Knuth, The Art of Computer Programming 2,
// algorithm 3.4.2 S. The result is ascending and needs no scratch.
func (l edgeSampler) exactly(count int) func(dst []Event, t int) []Event {
	return func(dst []Event, t int) []Event {
		s := l.at(t)
		n := len(l.g.Edges)
		missing := min(count, n)
		for k := 0; missing > 0; k++ {
			if s.IntN(n-k) < missing {
				dst = append(dst, l.g.event(k))
				missing--
			}
		}
		return dst
	}
}

// independently activates each edge independently with the same probability.
func (l edgeSampler) independently(prob float64) func(dst []Event, t int) []Event {
	if prob >= 1 || len(l.g.Edges) == 0 {
		return l.g.all
	}
	gaps := newGaps(prob, len(l.g.Edges))
	return func(dst []Event, t int) []Event {
		s := l.at(t)
		for k := gaps.next(&s); k < len(l.g.Edges); k += 1 + gaps.next(&s) {
			dst = append(dst, l.g.event(k))
		}
		return dst
	}
}

// parseMean returns the process of independent edges with a mean number of active ones.
func parseMean(p Spec, l edgeSampler) (Process, error) {
	k, n, prob := p.Numbers[0], float64(len(l.g.Edges)), 1.0
	switch {
	case !(k > 0):
		return nil, p.Errorf("%v edges on average; it must be more than 0", k)
	case n > 0 && k > n:
		return nil, p.Errorf("%v edges on average, but the graph %s has %v", k, l.g, n)
	case n > 0:
		prob = k / n
	}
	return process{p.String(), each(prob), l.independently(prob)}, nil
}
