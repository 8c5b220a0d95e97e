package dist

import (
	"fmt"

	"fspda/internal/rng"
	spell "fspda/internal/spelling"
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

	// Weighted reports whether rounds have weights of their own: symmetric matrices whose rows sum to
	// 1, with Weight on the active edges. They are not Metropolis weights.
	Weighted() bool
	// Weight returns the own weight of an edge that is active at iteration t, for both ends.
	Weight(e Event, t int) float64
	// Period is the number of iterations after which the edges repeat, or 0 if they do not.
	Period() int

	// Directed returns the process itself if agents send one way, else nil.
	Directed() Directed
	// Broadcasts reports whether agents send to all their neighbours at once. An algorithm with
	// unidirectional messages then uses Senders; all others use Active, which returns every edge at
	// a sender, and exchange in both directions.
	Broadcasts() bool
	// Senders overwrites dst with the agents that broadcast at iteration t >= 0, ascending, and
	// returns it.
	Senders(dst []int, t int) []int
	// SendRate returns the probability that an agent broadcasts at an iteration.
	SendRate() float64
}

// processKind is a row of the table of edge processes.
type processKind struct {
	Form
	make func(p Spec, l edgeSampler) (Process, error)

	oneWay bool // oneWay says that the process is [Directed].
	// unordered says that at most one edge at an agent is active, and that neither end of it is the
	// initiator. The ends are ordered by number.
	unordered bool
}

// processKinds is the table of edge processes.
var processKinds = []processKind{
	{Form: Form{Name: "one-edge", Meaning: "one edge, uniform among all"}, make: oneEdge},
	{Form: Form{Name: "one-edge-round-robin",
		Meaning: "agent t mod n and a neighbour of it, uniform among its neighbours"},
		make: func(p Spec, l edgeSampler) (Process, error) { return process{p.Name, l.inTurnRate, l.inTurn}, nil }},
	{Form: Form{Name: "k-edges", Args: []Arg{Number("k")},
		Meaning: "each edge with the same probability, k edges on average"}, make: parseMean},
	{Form: Form{Name: "k-edges-exact", Args: []Arg{Count("k")}, Meaning: "k different edges, uniform"},
		make: exactEdges},
	{Form: Form{Name: "bernoulli", Args: []Arg{Probability("p")}, Meaning: "each edge with probability p"},
		make: func(p Spec, l edgeSampler) (Process, error) {
			return process{p.String(), each(p.Numbers[0]), l.independently(p.Numbers[0])}, nil
		}},
	{Form: Form{Name: "broadcast", Args: []Arg{Probability("p")},
		Meaning: "each agent broadcasts to its neighbours with probability p"}, make: broadcastAtRandom},
	{Form: Form{Name: "broadcast-one", Meaning: "one agent broadcasts, uniform among all"}, make: broadcastOne},
	{Form: Form{Name: "broadcast-rr", Meaning: "agent t mod n broadcasts"}, make: broadcastInTurn},
	{Form: Form{Name: "matching",
		Meaning: "a random set of edges without common agents to which none can be added"}, unordered: true,
		make: func(_ Spec, l edgeSampler) (Process, error) { return newMatching(l), nil }},
	{Form: Form{Name: "periodic", Args: []Arg{Count("tau")},
		Meaning: "all edges at each tau-th iteration (t+1 divisible by tau), else none"},
		make: func(p Spec, l edgeSampler) (Process, error) {
			return process{p.String(), each(1 / p.Numbers[0]), l.g.last(p.Whole(0))}, nil
		}},
	{Form: Form{Name: "coin", Args: []Arg{Probability("p")},
		Meaning: "all edges at once with probability p, else none"},
		make: func(p Spec, l edgeSampler) (Process, error) {
			return process{p.String(), each(p.Numbers[0]), l.together(p.Numbers[0])}, nil
		}},
	{Form: Form{Name: "base", Args: []Arg{Count("k")},
		Meaning: "rounds with at most k edges at an agent, after which all have the exact mean; on the graph of " +
			"that name"},
		make: newRepeated, unordered: true},
	{Form: Form{Name: "simple-base", Args: []Arg{Count("k")},
		Meaning: "the same without the shortening by common factors"}, make: newRepeated, unordered: true},
	{Form: Form{Name: "hyper-hypercube", Args: []Arg{Count("k")},
		Meaning: "the same for numbers of agents without a prime factor above k+1"}, make: newRepeated,
		unordered: true},
	{Form: Form{Name: "one-peer-exp", Meaning: "one way: agent i sends to i+2^k, cyclic, with k = 0, 1, … in turn"},
		make: newExponential, oneWay: true},
	{Form: Form{Name: "static-exp", Meaning: "one way: agent i sends to i+2^k, cyclic, for all k"},
		make: newExponential, oneWay: true},
	{Form: Form{Name: "push", Args: []Arg{Count("k")},
		Meaning: "one way: each agent sends to k of its neighbours, uniform"}, make: newPush, oneWay: true},
	{Form: Form{Name: "arcs", Args: []Arg{textArg(pathArg)},
		Meaning: "one way: a file with \"i j\" on each line: i sends to j in each iteration; # begins a comment"},
		make: readArcs, oneWay: true},
	{Form: Form{Name: "full", Meaning: "all edges"},
		make: func(p Spec, l edgeSampler) (Process, error) { return process{p.Name, each(1), l.g.all}, nil }},
	{Form: Form{Name: "empty", Meaning: "no edge"},
		make: func(p Spec, _ edgeSampler) (Process, error) { return process{p.Name, each(0), none}, nil }},
	{Form: Form{Name: "trace", Args: []Arg{textArg(pathArg)},
		Meaning: "a file with \"t i j\" on each line, i the initiator; # begins a comment"}, make: readTrace},
}

// InitiatorByCoin reports whether no end of an event of the process that a spec names is its
// initiator.
func InitiatorByCoin(spec string) bool {
	kind, _ := rowOf(processKinds, spell.Name(spec))
	return kind.unordered
}

// ParseProcess returns the edge process on g that spec names. The error for an unknown spec lists
// all spellings. Random processes draw from the stream "edges" with the key t. On a graph without
// edges, no process has events.
func ParseProcess(spec string, g *Graph, seed uint64) (Process, error) {
	p, kind, err := readSpec("edge process", spec, processKinds)
	if err != nil {
		return nil, err
	}
	return kind.make(p, edgeSampler{g: g, base: rng.New(seed, "edges")})
}

func oneEdge(p Spec, l edgeSampler) (Process, error) {
	return process{p.Name, each(1 / float64(len(l.g.Edges))), l.one}, nil
}

func exactEdges(p Spec, l edgeSampler) (Process, error) {
	k, edges := p.Whole(0), len(l.g.Edges)
	if k > edges && edges > 0 {
		return nil, p.Errorf("%d edges at a time, but the graph %s has %d", k, l.g, edges)
	}
	return process{p.String(), each(float64(k) / float64(edges)), l.exactly(k)}, nil
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
