package dist

import (
	"fmt"

	"fspda/internal/rng"
)

// Event is one active edge of an iteration. From is the initiator: a random end for one-edge, the
// agent whose turn it is for one-edge-round-robin, the first agent listed for a trace, and the
// lower one for all others (From < To).
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

// Process maps iterations to active edges. It is a pure function of (run seed, t), so all agents
// agree on it without communication. It is safe for concurrent use.
type Process interface {
	// String returns the spec from which ParseProcess makes this process.
	String() string
	// Active overwrites dst with the edges active at iteration t >= 0, ascending by edge number,
	// and returns it.
	Active(dst []Event, t int) []Event
	// Rate returns the probability that an edge is active at an iteration, or the share of
	// iterations at which it is.
	Rate(edge int) float64
}

// Broadcaster is a Process in which agents send to all their neighbours at once. An algorithm with
// unidirectional messages uses Senders; all others use Active, which returns every edge at a
// sender, and exchange in both directions.
type Broadcaster interface {
	Process
	// Senders overwrites dst with the agents that send at iteration t >= 0, ascending, and returns
	// it.
	Senders(dst []int, t int) []int
}

var processSpellings = []spelling{
	{"one-edge", "one edge, uniform among all"},
	{"one-edge-round-robin", "agent t mod n and a neighbour of it, uniform among its neighbours"},
	{"k-edges(k)", "each edge with the same probability, k edges on average"},
	{"k-edges-exact(k)", "k different edges, uniform"},
	{"bernoulli(p)", "each edge with probability p"},
	{"broadcast(p)", "each agent broadcasts to its neighbours with probability p"},
	{"broadcast-one", "one agent broadcasts, uniform among all"},
	{"broadcast-rr", "agent t mod n broadcasts"},
	{"matching", "a random set of edges without common agents to which none can be added"},
	{"periodic(tau)", "all edges at each tau-th iteration (t+1 divisible by tau), else none"},
	{"coin(p)", "all edges at once with probability p, else none"},
	{
		"base(k)",
		"rounds with at most k edges at an agent, after which all have the exact mean; on the graph of that name",
	},
	{"simple-base(k)", "the same without the shortening by common factors"},
	{"hyper-hypercube(k)", "the same for numbers of agents without a prime factor above k+1"},
	{"one-peer-exp", "one way: agent i sends to i+2^k, cyclic, with k = 0, 1, … in turn"},
	{"static-exp", "one way: agent i sends to i+2^k, cyclic, for all k"},
	{"push(k)", "one way: each agent sends to k of its neighbours, uniform"},
	{"arcs(path)", "one way: a file with \"i j\" on each line: i sends to j in each iteration; # begins a comment"},
	{"full", "all edges"},
	{"empty", "no edge"},
	{"trace(path)", "a file with \"t i j\" on each line, i the initiator; # begins a comment"},
}

// ParseProcess returns the edge process on g that spec names. The error for an unknown spec lists
// all spellings. Random processes draw from the stream "edges" with the key t. On a graph without
// edges, no process has events.
func ParseProcess(spec string, g *Graph, seed uint64) (Process, error) {
	p, err := readSpec("edge process", spec, processSpellings)
	if err != nil {
		return nil, err
	}
	made, err := newProcess(p, edgeSampler{g: g, base: rng.New(seed, "edges")})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// newProcess returns the process of a spec; it is undefined with an error.
func newProcess(p parsedSpec, l edgeSampler) (Process, error) {
	switch p.name {
	case "one-edge":
		return process{p.name, each(1 / float64(len(l.g.Edges))), l.one}, nil
	case "one-edge-round-robin":
		return process{p.name, l.inTurnRate, l.inTurn}, nil
	case "k-edges":
		return parseMean(p, l)
	case "bernoulli":
		prob, err := p.probability()
		if err != nil {
			return nil, err
		}
		return process{withFloat(p.name, prob), each(prob), l.independently(prob)}, nil
	case "k-edges-exact":
		k, err := p.edgeCount(l.g)
		return process{withInt(p.name, k), each(float64(k) / float64(len(l.g.Edges))), l.exactly(k)}, err
	case "broadcast", "broadcast-one", "broadcast-rr":
		return parseBroadcast(p, l)
	case "matching":
		return newMatching(l), nil
	case "periodic":
		tau, err := p.count()
		return process{withInt(p.name, tau), each(1 / float64(tau)), l.g.last(tau)}, err
	case "coin":
		prob, err := p.probability()
		return process{withFloat(p.name, prob), each(prob), l.together(prob)}, err
	case "full":
		return process{p.name, each(1), l.g.all}, nil
	case "base", "simple-base", "hyper-hypercube":
		return newRepeated(p, l.g)
	case "one-peer-exp", "static-exp", "push", "arcs":
		return parseDirected(p, l)
	case "trace":
		return readTrace(p, l.g)
	}
	return process{p.name, each(0), none}, nil
}

// edgeCount parses the argument as a number of edges of g.
func (p parsedSpec) edgeCount(g *Graph) (int, error) {
	k, err := p.count()
	if err == nil && k > len(g.Edges) && len(g.Edges) > 0 {
		err = p.bad("%d edges at a time, but the graph %s has %d", k, g, len(g.Edges))
	}
	return k, err
}

// edgeSampler is the common part of the random processes: the graph, and the stream "edges" of the
// run.
type edgeSampler struct {
	g    *Graph
	base rng.Stream
}

// at returns the stream of iteration t. Deriving it from the run's stream takes a third of the time
// of deriving it from the seed, and every agent needs it at every iteration.
func (l *edgeSampler) at(t int) rng.Stream {
	checkTime(t)
	return l.base.Sub(uint64(t))
}

// checkTime panics for a negative iteration, which is a bug of the caller.
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
