package algo

import (
	"fmt"
	"slices"
)

// Edges is a kind of communication: the edge processes that an algorithm can use, and when it uses
// them. The values are the variables of this type, which [EdgeKinds] lists.
type Edges struct {
	Name string // The name of the variable.
	// Auto is what edges auto comes to, given the graph and the number of local steps of a round. It
	// is nil if the agents use no graph.
	Auto func(graph string, steps int) string
	// Own says which edge processes that a graph brings along fit too. Edges auto comes to them.
	Own OwnProcess
	// Fit names the other processes that fit; nil if all do.
	Fit []string
	// Reason completes the name of the algorithm to a sentence that says why other processes do not
	// fit.
	Reason string

	// Collective says that every message reaches all agents, so that graph and edges play no part.
	Collective bool
	// Announces says that what an agent sends goes to all its neighbours, or to all agents, whether
	// they send or not.
	Announces bool
	// Reduces says that the exchange is an all-reduce: all links have the same mask, which is drawn
	// from the iteration alone, and the cost is a ring's. It takes place in every iteration, or in
	// the last one of each round.
	Reduces bool
	// Gathers says that such an exchange costs a message to each of all others in place of a ring.
	Gathers bool
	// InRounds says that local_steps makes rounds that the edge process must end.
	InRounds bool
	// AtRoundEnds says that the process is used in the last iterations of rounds of local_steps alone.
	AtRoundEnds bool
	// OptionalRounds says that local_steps 0 stands for no rounds.
	OptionalRounds bool
	// Drawn says that the lengths of rounds are drawn, as by a coin.
	Drawn bool
	// Directed says that messages go one way, over the arcs of a directed graph.
	Directed bool
	// Clocks says that the agents have no iterations in common: the algorithm is [Asynchronous].
	Clocks bool
}

// OwnProcess is a set of edge processes that graphs bring along.
type OwnProcess int

// The sets of processes of graphs.
const (
	NoOwnProcess OwnProcess = iota
	AnyOwnProcess
	OwnPairs // In which no agent has several edges in one iteration.
	OwnArcs  // On directed graphs.
)

// The kinds of communication.
var (
	// AnyEdges is any process.
	AnyEdges = &Edges{Name: "AnyEdges", Auto: autoIs("one-edge"), Own: AnyOwnProcess}
	// ManyEdges is any process. Few edges at a time limit the step, so that auto is full.
	ManyEdges = &Edges{Name: "ManyEdges", Auto: autoIs("full")}
	// WholeGraph is all edges in every iteration.
	WholeGraph = &Edges{Name: "WholeGraph", Auto: autoIs("full"), Fit: []string{"full"},
		Reason: "is stated for a static graph, all of whose edges are active in every iteration (full)"}
	// RoundGraph is all edges at the end of each round.
	RoundGraph = &Edges{Name: "RoundGraph", Auto: autoPeriodic, Fit: []string{"full", "periodic"}, InRounds: true,
		Reason: "averages over all edges at the end of each round (periodic(tau), or full for rounds of one)"}
	// CoinGraph is all edges or none.
	CoinGraph = &Edges{Name: "CoinGraph", Auto: autoCoin, Fit: []string{"full", "periodic", "coin"}, InRounds: true,
		Drawn: true, Reason: "averages over all edges when a common coin says so (coin(p), periodic(tau) or full)"}
	// Pairs is at most one edge at an agent.
	Pairs = &Edges{Name: "Pairs", Auto: autoIs("one-edge"), Own: OwnPairs, Fit: inPairs,
		Reason: "averages in pairs, and an agent with several edges at once could not (one-edge, " +
			"one-edge-round-robin, matching, base(1), or a trace of pairs)"}
	// RoundPairs is Pairs in the last iteration of each round of local_steps.
	RoundPairs = &Edges{Name: "RoundPairs", Auto: autoIs("matching"), Own: OwnPairs, Fit: inPairs, AtRoundEnds: true,
		Reason: "averages in pairs at the end of each round, and an agent with several edges at once could not " +
			"(matching, one-edge, one-edge-round-robin, base(1), or a trace of pairs)"}
	// RoundEdges is any process, in the last iteration of each round of local_steps.
	RoundEdges = &Edges{Name: "RoundEdges", Auto: autoIs("matching"), Own: AnyOwnProcess, AtRoundEnds: true}
	// AnyRounds is RoundEdges if local_steps is set, and AnyEdges if it is not.
	AnyRounds = &Edges{Name: "AnyRounds", Auto: autoIs("one-edge"), Own: AnyOwnProcess, AtRoundEnds: true,
		OptionalRounds: true}
	// Broadcast is one-way messages: an active agent sends to all its neighbours and need not receive
	// from them. Its links are all links of the graph, with the weights of the mixing matrix.
	Broadcast = &Edges{Name: "Broadcast", Auto: autoIs("full"), Announces: true,
		Fit: []string{"full", "periodic", "coin", "broadcast", "broadcast-one", "broadcast-rr", "empty"},
		Reason: "has agents that broadcast to their neighbours (full, periodic(tau), coin(p), broadcast(p), " +
			"broadcast-one, broadcast-rr)"}
	// OneWay is messages in one direction, over the arcs of a directed graph.
	OneWay = &Edges{Name: "OneWay", Auto: autoArcs, Own: OwnArcs, Directed: true,
		Fit:    []string{"one-peer-exp", "static-exp", "push", "arcs"},
		Reason: "sends one way (one-peer-exp, static-exp, push(k) or arcs(PATH))"}
	// Clocks is a clock on each edge, for an [Asynchronous] algorithm.
	Clocks = &Edges{Name: "Clocks", Auto: autoIs("one-edge"), Fit: []string{"one-edge"}, Clocks: true,
		Reason: "has a clock on every edge, which rings as often as contacts says"}
	// AllReduce is an all-reduce: every agent receives from all others, whatever the graph.
	AllReduce = &Edges{Name: "AllReduce", Collective: true, Reduces: true}
	// RoundGather is messages that reach all agents at the ends of rounds, whatever the graph.
	RoundGather = &Edges{Name: "RoundGather", Collective: true, Reduces: true, Gathers: true}
	// AllGather is messages that reach all agents in each iteration, whatever the graph.
	AllGather = &Edges{Name: "AllGather", Collective: true, Announces: true}
)

// inPairs names the processes in which no agent has several edges, or those of which a check finds
// it.
var inPairs = []string{"one-edge", "one-edge-round-robin", "matching", "trace", "empty"}

// EdgeKinds lists the kinds of communication.
func EdgeKinds() []*Edges {
	return []*Edges{AnyEdges, ManyEdges, WholeGraph, RoundGraph, CoinGraph, Pairs, RoundPairs, RoundEdges, AnyRounds,
		Broadcast, OneWay, Clocks, AllReduce, RoundGather, AllGather}
}

// Fits reports whether a process of this name fits, without those that graphs bring along.
func (e *Edges) Fits(process string) bool { return e.Fit == nil || slices.Contains(e.Fit, process) }

// Anytime reports whether every process fits in every iteration, and auto is one edge at a time.
func (e *Edges) Anytime() bool {
	return e.Fit == nil && e.Own == AnyOwnProcess && (!e.AtRoundEnds || e.OptionalRounds)
}

func autoIs(process string) func(string, int) string {
	return func(string, int) string { return process }
}

func autoPeriodic(_ string, steps int) string { return fmt.Sprintf("periodic(%d)", steps) }

func autoCoin(_ string, steps int) string { return fmt.Sprintf("coin(%v)", 1/float64(steps)) }

// autoArcs is a process that fits the arcs of the graph.
func autoArcs(graph string, _ int) string {
	if graph == "complete" || graph == "exponential" {
		return "one-peer-exp"
	}
	return "push(1)"
}
