package dist

import (
	"fmt"

	"fspda/internal/rng"
)

// Event is one active edge of an iteration. From is the initiator: the ends of one-edge are ordered by a fair coin, those of
// one-edge-round-robin by whose turn it is, those of a trace as they are listed, and all others by number (From < To).
type Event struct {
	Edge     int // number in Graph.Edges
	From, To int
}

// Peer returns the other end of the event if agent self takes part in it.
func (e Event) Peer(self int) (peer int, ok bool) {
	switch self {
	case e.From:
		return e.To, true
	case e.To:
		return e.From, true
	}
	return 0, false
}

// Process maps iterations to active edges. It is a pure function of (run seed, t), so all agents agree on it without a message;
// it is safe for concurrent use.
type Process interface {
	// String returns the spec that ParseProcess turns into this process again.
	String() string
	// Active overwrites dst with the edges active at iteration t >= 0, ascending by edge number, and returns it.
	Active(dst []Event, t int) []Event
	// Rate is the probability that an edge is active at an iteration, or the share of iterations at which it is.
	Rate(edge int) float64
}

// Broadcaster is a Process whose events come from agents that speak to all their neighbours at once. An algorithm with one-way
// messages asks for the speakers; all others take Active, which has every edge at a speaker, and exchange both ways.
type Broadcaster interface {
	Process
	// Speakers overwrites dst with the agents that speak at iteration t >= 0, ascending, and returns it.
	Speakers(dst []int, t int) []int
}

var processSpellings = []spelling{
	{"one-edge", "one edge, uniform among all"},
	{"one-edge-round-robin", "agent t mod n and a neighbour of it, uniform among its neighbours"},
	{"k-edges(k)", "each edge with the same probability, k edges on average"},
	{"k-edges-exact(k)", "k different edges, uniform"},
	{"bernoulli(p)", "each edge with probability p"},
	{"broadcast(p)", "each agent speaks with probability p"},
	{"broadcast-one", "one agent speaks, uniform among all"},
	{"broadcast-rr", "agent t mod n speaks"},
	{"matching", "a random set of edges without common agents to which none can be added"},
	{"periodic(tau)", "all edges at each tau-th iteration (t+1 divisible by tau), else none"},
	{"full", "all edges"},
	{"empty", "no edge"},
	{"trace(path)", "a file with \"t i j\" on each line, i the initiator; # begins a comment"},
}

// ParseProcess makes the edge process on g that spec names; the error for an unknown spec lists the spellings. What is random
// in it comes from the stream "edges" with the key t. On a graph without edges nothing ever happens.
func ParseProcess(spec string, g *Graph, seed uint64) (Process, error) {
	p, err := readSpec("edge process", spec, processSpellings)
	if err != nil {
		return nil, err
	}
	law := law{g: g, base: rng.New(seed, "edges")}
	switch p.name {
	case "one-edge":
		return oneEdge{law}, nil
	case "one-edge-round-robin":
		return roundRobin{law}, nil
	case "k-edges", "bernoulli":
		return parseIndependent(p, law)
	case "k-edges-exact":
		k, err := p.edgeCount(g)
		return orError(exactly{law, k}, err)
	case "broadcast", "broadcast-one", "broadcast-rr":
		return parseBroadcast(p, law)
	case "matching":
		return newMatching(law), nil
	case "periodic":
		tau, err := p.count()
		return orError(periodic{g, tau}, err)
	case "full":
		return full{g}, nil
	case "trace":
		return readTrace(p, g)
	}
	return empty{}, nil
}

// orError drops a process that was made from an argument in error.
func orError(p Process, err error) (Process, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// edgeCount reads the argument as a number of edges of g.
func (p parsedSpec) edgeCount(g *Graph) (int, error) {
	k, err := p.count()
	if err == nil && k > len(g.Edges) && len(g.Edges) > 0 {
		err = p.bad("%d edges at a time, but the graph %s has %d", k, g, len(g.Edges))
	}
	return k, err
}

// law is what every random process has: its graph, and the stream "edges" of its run.
type law struct {
	g    *Graph
	base rng.Stream
}

// at returns the stream of iteration t. It is derived from the stream of the run and not from the seed, since that takes a third of
// the time, and every agent needs it at every iteration.
func (l *law) at(t int) rng.Stream {
	checkTime(t)
	return l.base.Sub(uint64(t))
}

// checkTime guards the entry points: a negative t is a bug of the caller.
func checkTime(t int) {
	if t < 0 {
		panic(fmt.Sprintf("dist: iteration %d is negative", t))
	}
}

// event returns edge k with its ends ordered by number.
func (g *Graph) event(k int) Event { return Event{Edge: k, From: g.Edges[k].I, To: g.Edges[k].J} }

// eventFrom returns edge k as initiated by agent i, one of its ends.
func (g *Graph) eventFrom(k, i int) Event {
	e := g.Edges[k]
	return Event{Edge: k, From: i, To: e.I + e.J - i}
}

// oneEdge: one edge, uniform.
type oneEdge struct{ law }

func (oneEdge) String() string          { return "one-edge" }
func (p oneEdge) Rate(edge int) float64 { return 1 / float64(len(p.g.Edges)) }

// Active draws the edge, then the coin. It costs the same for every t: every agent asks at every iteration.
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

// roundRobin: agent t mod n, and one of its neighbours.
type roundRobin struct{ law }

func (roundRobin) String() string { return "one-edge-round-robin" }

// Rate is (1/n)(1/deg_i + 1/deg_j).
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

// independent: each edge by itself with the same probability.
type independent struct {
	law
	spec string
	p    float64
	gaps *gaps // nil where p is 1 or there is no edge
}

func parseIndependent(p parsedSpec, l law) (Process, error) {
	if p.name == "bernoulli" {
		prob, err := p.probability()
		if err != nil {
			return nil, err
		}
		return newIndependent(l, withFloat(p.name, prob), prob), nil
	}
	k, err := p.float()
	n := float64(len(l.g.Edges))
	switch {
	case err != nil:
		return nil, err
	case !(k > 0):
		return nil, p.bad("%v edges on average; it must be more than 0", k)
	case n == 0:
		return newIndependent(l, withFloat(p.name, k), 1), nil
	case k > n:
		return nil, p.bad("%v edges on average, but the graph %s has %v", k, l.g, n)
	}
	return newIndependent(l, withFloat(p.name, k), k/n), nil
}

func newIndependent(l law, spec string, prob float64) independent {
	p := independent{law: l, spec: spec, p: prob}
	if prob > 0 && prob < 1 && len(l.g.Edges) > 0 {
		p.gaps = newGaps(prob, len(l.g.Edges))
	}
	return p
}

func (p independent) String() string        { return p.spec }
func (p independent) Rate(edge int) float64 { return p.p }

func (p independent) Active(dst []Event, t int) []Event {
	if p.gaps == nil {
		return full{p.g}.Active(dst, t)
	}
	dst = dst[:0]
	s := p.at(t)
	for k := p.gaps.next(&s); k < len(p.g.Edges); k += 1 + p.gaps.next(&s) {
		dst = append(dst, p.g.event(k))
	}
	return dst
}

// exactly: k different edges, uniform.
type exactly struct {
	law
	k int
}

func (p exactly) String() string        { return withInt("k-edges-exact", p.k) }
func (p exactly) Rate(edge int) float64 { return float64(p.k) / float64(len(p.g.Edges)) }

// Active passes over the edges once and takes each with the probability that the number still missing asks for (Knuth, The Art
// of Computer Programming 2, algorithm 3.4.2 S): ascending, and no scratch.
func (p exactly) Active(dst []Event, t int) []Event {
	dst = dst[:0]
	s := p.at(t)
	n := len(p.g.Edges)
	missing := min(p.k, n)
	for k := 0; missing > 0; k++ {
		if s.IntN(n-k) < missing {
			dst = append(dst, p.g.event(k))
			missing--
		}
	}
	return dst
}

// full: all edges.
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

// empty: no edge.
type empty struct{}

func (empty) String() string                    { return "empty" }
func (empty) Rate(edge int) float64             { return 0 }
func (empty) Active(dst []Event, t int) []Event { checkTime(t); return dst[:0] }

// periodic: all edges at the last iteration of each group of tau.
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
