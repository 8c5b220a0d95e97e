package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"fspda/dist"
	"fspda/internal/spelling"
	"fspda/train/algo"
	"fspda/train/setting"
)

// Method describes an algorithm: its name, its constructor, and what it needs of graph, exchange
// and schedule. Resolve refuses configurations that do not meet these needs.
type Method struct {
	Name string
	// New makes the algorithm of a setup. Names, graph, edge process and mask are resolved.
	New func(s *Setup) algo.Algorithm
	// Check refuses settings outside the stable region and returns warnings. It may be nil.
	Check func(s *Setup) (warnings []string, err error)

	// Keys lists the keys that New and Check read and that not every algorithm has, besides eta and
	// mixing, which follow from Dual and Mixing. Others are refused if they are set explicitly.
	Keys []string

	Params []Param // settings that only this algorithm has; New reads them by Setup.Param and Choice

	Edges      EdgeNeed
	Usual      Usual    // defaults of its own
	Gradients  int      // of a batch, in an asynchronous algorithm; 0: 1
	Masks      bool     // an exchange may carry part of the coordinates
	Mixing     bool     // it averages with the fixed matrix W: Link.Fixed is set
	Tree       bool     // graphs without cycles only; an unset graph is binary-tree
	HalfLazy   bool     // that is (I+W)/2, with the W of the key mixing
	Shifts     bool     // its averages move coordinates on which agents agree, by rounding or more
	Optimizers []string // values of the key optimizer that it takes; nil: only sgd
	// where its correction may enter with an adaptive optimizer, the default first; nil: it has
	// none
	Placements []string
	Takes      Gradient // what its optimizer takes
	Dual       bool     // it uses eta
	Exact      bool     // it is stated for exact gradients
	Constant   bool     // it has no step size that a schedule could change

	About About // its line in the table of methods
}

// Usual has defaults of a method that differ from those of others.
type Usual struct {
	Steps int    // of local_steps; 0: 10
	Mask  string // what mask auto comes to in an all-reduce; empty: as elsewhere
}

// Gradient is what the optimizer of a method takes.
type Gradient int

const (
	OwnGradient     Gradient = iota // of the agent's batch, with a correction where it is placed so
	TrackedGradient                 // a tracker of the mean gradient; optimizers are placed corrected
	MeanGradient                    // the mean over all agents
)

// EdgeNeed is the set of edge processes that an algorithm can use.
type EdgeNeed int

const (
	AnyEdges   EdgeNeed = iota // any; auto is one-edge
	ManyEdges                  // any; auto is full, since few at a time limit the step
	WholeGraph                 // all edges in every iteration: full
	Rounds                     // all edges at the end of each round: periodic(tau), or full
	Coins                      // all edges or none: coin(p), periodic(tau) or full
	AllReduce                  // an all-reduce, in each iteration or round: graph and edges play no part
	Pairs                      // at most one edge at an agent
	// agents that broadcast to their neighbours: broadcast and its like, or all edges or none
	Broadcast
	Clocks     // none: every edge has a clock of its own
	RoundPairs // Pairs, in the last iteration of each round of local_steps; auto is matching
	RoundEdges // any, in the last iteration of each round of local_steps; auto is matching
	AnyRounds  // any, as RoundEdges if local_steps is set; auto is one-edge
	OneWay     // messages go one way: one-peer-exp, static-exp, push(k), arcs(PATH)
	AllGather  // every message reaches all agents, in each iteration: graph and edges play no part
)

// The values of the key weights.
const (
	weightsConstant   = "constant"
	weightsMetropolis = "metropolis"
	weightsProcess    = "process"
)

// defaultSteps is the default number of local steps between two exchanges.
const defaultSteps = 10

var (
	registry sync.RWMutex
	methods  = slices.Clone(builtin)
)

// Register adds an algorithm to those that Config.Algo can name. Call it before the first run, for
// instance in an init function. It panics if the name is taken or the method has no New.
func Register(m Method) {
	registry.Lock()
	defer registry.Unlock()
	switch {
	case m.Name == "" || m.New == nil:
		panic(fmt.Sprintf("config: Register of %q: a method needs a Name and a New", m.Name))
	case slices.ContainsFunc(methods, func(o Method) bool { return o.Name == m.Name }):
		panic(fmt.Sprintf("config: Register of %q: the name is taken", m.Name))
	}
	if err := setting.Fault(m.Params); err != nil {
		panic(fmt.Sprintf("config: Register of %q: %v", m.Name, err))
	}
	methods = append(methods, m)
}

// registered lists all methods.
func registered() []Method {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Clone(methods)
}

// Algorithms lists the names that Config.Algo can have.
func Algorithms() []string { return withFeature(func(Method) bool { return true }) }

// findMethod returns the method that Config.Algo names, and whether it exists.
func (c Config) findMethod() (m Method, ok bool) {
	registry.RLock()
	defer registry.RUnlock()
	if at := slices.IndexFunc(methods, func(m Method) bool { return m.Name == c.Algo }); at >= 0 {
		return methods[at], true
	}
	return m, false
}

// HasVirtualTime reports whether the run counts virtual time: over simulated links, and with an
// asynchronous algorithm that is simulated.
func (c Config) HasVirtualTime() bool { return c.Links != "" || c.clocked() && c.Clock != ClockReal }

// clocked reports whether Config.Algo names an asynchronous algorithm.
func (c Config) clocked() bool {
	m, ok := c.findMethod()
	return ok && m.Edges == Clocks
}

// settleMethod resolves the keys of the optimizer, and refuses a network whose loss decays weights
// that the optimizer decays.
func (s *Setup) settleMethod(m Model) error {
	warnings, err := s.Config.settleOptimizer(s.method)
	if check := s.Config.optimizer().Check; check != nil && err == nil {
		var more []string
		more, err = check(s)
		warnings = append(warnings, more...)
	}
	if s.Warnings = append(s.Warnings, warnings...); err != nil {
		return err
	}
	if n, ok := m.(interface{ WeightDecay() float64 }); ok && n.WeightDecay() > 0 &&
		s.Config.DecayForm == decayDecoupled {
		return Invalid("decay_form", decayDecoupled, "the loss of the network has an L2 term of coefficient %v, and "+
			"weights would be decayed twice: make the network with the L2 of Config.Network", n.WeightDecay())
	}
	return nil
}

// admit refuses keys that the method does not use, and resolves edges and mask where they are auto.
func (s *Setup) admit() error {
	c, m := &s.Config, s.method
	if c.Schedule != "constant" && m.Constant {
		return Invalid("schedule", c.Schedule, "%s has no step size that could follow it: use schedule constant",
			m.Name)
	}
	if c.Dual != "same-time" && !m.uses("dual") {
		return Invalid("dual", c.Dual, "only fspda-sa has this form of the released program: use dual same-time")
	}
	switch m.Edges {
	case AllReduce:
		s.admitCollective()
		return nil
	case AllGather:
		s.admitCollective()
		return s.admitTransform()
	}
	if err := s.admitCompressor(); err != nil {
		return err
	}
	if err := s.admitMask(); err != nil {
		return err
	}
	return s.admitEdges()
}

// admitCollective resolves the keys of an exchange among all agents, which uses no graph.
func (s *Setup) admitCollective() {
	c, m := &s.Config, s.method
	c.Graph, c.Edges = "complete", "full"
	if m.uses("local_steps") {
		s.settleSteps()
		if c.LocalSteps > 1 {
			c.Edges = Chosen(fmt.Sprintf("periodic(%d)", c.LocalSteps))
		}
	}
	switch {
	case !m.Masks:
		c.Mask, c.Density = "all", 1
	case c.Mask == "" && m.Usual.Mask != "":
		c.Mask = Chosen(m.Usual.Mask)
	}
}

// settleSteps resolves local_steps 0.
func (s *Setup) settleSteps() {
	if c := &s.Config; c.LocalSteps == 0 {
		c.LocalSteps = cmp.Or(s.method.Usual.Steps, defaultSteps)
	}
}

// withFeature lists the algorithms for which has returns true.
func withFeature(has func(m Method) bool) (names []string) {
	for _, m := range registered() {
		if has(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

// admitMask sets the mask to all coordinates for an algorithm that sends whole vectors. It refuses
// another mask, and a density other than the default.
func (s *Setup) admitMask() error {
	c, m := &s.Config, s.method
	if m.Masks {
		return nil
	}
	masked := func() string { return strings.Join(withFeature(func(m Method) bool { return m.Masks }), ", ") }
	if c.Mask != "" && c.Mask != "all" {
		return Invalid("mask", c.Mask, "%s averages whole vectors and would not converge on a part of them: use "+
			"mask all, or an algorithm that admits masks (%s)", m.Name, masked())
	}
	if c.Density != 1 && c.Density != Default().Density {
		return Invalid("density", c.Density,
			"%s sends all coordinates: set density 1, or choose an algorithm that admits masks (%s)", m.Name, masked())
	}
	c.Mask, c.Density = "all", 1
	return nil
}

// admitEdges resolves edges auto and checks edges and local_steps against the method's need.
func (s *Setup) admitEdges() error {
	c, m := &s.Config, s.method
	if c.LocalSteps != 0 && !m.roundEnds() && m.Edges != Rounds && m.Edges != Coins &&
		(m.Edges != Pairs || c.Swarm != "blocking") {
		return Invalid("local_steps", c.LocalSteps, "%s has no rounds: set local_steps 0 and say with edges when "+
			"to communicate, such as edges 'periodic(%d)'", m.Name, c.LocalSteps)
	}
	if m.roundEnds() && m.Edges != AnyRounds {
		s.settleSteps()
	}
	steps := cmp.Or(c.LocalSteps, defaultSteps)
	if own, ok := dist.ProcessOfGraph(c.Graph); ok && c.Edges == "" && m.plays(own) {
		c.Edges = Chosen(own)
		return nil
	}
	if c.Edges == "" {
		c.Edges = map[EdgeNeed]Chosen{AnyEdges: "one-edge", ManyEdges: "full", WholeGraph: "full",
			Rounds: Chosen(fmt.Sprintf("periodic(%d)", steps)), Coins: Chosen(fmt.Sprintf("coin(%v)",
				1/float64(steps))),
			Pairs: "one-edge", Broadcast: "full", Clocks: "one-edge", RoundPairs: "matching", RoundEdges: "matching",
			AnyRounds: "one-edge", OneWay: Chosen(oneWayOf(c.Graph))}[m.Edges]
		return nil
	}
	name := spelling.Name(string(c.Edges))
	pairs := []string{"one-edge", "one-edge-round-robin", "matching", "trace", "empty"}
	fit := map[EdgeNeed][]string{WholeGraph: {"full"}, Rounds: {"full", "periodic"},
		Coins: {"full", "periodic", "coin"}, Pairs: pairs, RoundPairs: pairs,
		Broadcast: {"full", "periodic", "coin", "broadcast", "broadcast-one", "broadcast-rr", "empty"},
		Clocks:    {"one-edge"},
		OneWay:    {"one-peer-exp", "static-exp", "push", "arcs"}}[m.Edges]
	if fit != nil && !slices.Contains(fit, name) && !m.plays(string(c.Edges)) {
		return Invalid("edges", c.Edges, "%s %s: use edges auto", m.Name, edgeReason[m.Edges])
	}
	return nil
}

// GradientsPerBatch is the number of gradients that an asynchronous algorithm takes of a batch.
func (s *Setup) GradientsPerBatch() int { return max(1, s.method.Gradients) }

// roundEnds reports whether the edge process is played at the ends of rounds alone.
func (m Method) roundEnds() bool {
	return m.Edges == RoundPairs || m.Edges == RoundEdges || m.Edges == AnyRounds
}

// plays reports whether the method can use the process that a graph is made for.
func (m Method) plays(process string) bool {
	switch m.Edges {
	case AnyEdges, RoundEdges, AnyRounds:
		return true
	case Pairs, RoundPairs:
		return dist.InPairs(process)
	case OneWay:
		return dist.OneWay(process)
	}
	return false
}

// oneWayOf is the process of arcs for a graph that does not name one.
func oneWayOf(graph string) string {
	if graph == "complete" || graph == "exponential" {
		return "one-peer-exp"
	}
	return "push(1)"
}

// Directed returns the edge process of an algorithm on directed graphs; nil: it is none.
func (s *Setup) Directed() dist.Directed {
	if s.method.Edges != OneWay {
		return nil
	}
	d, _ := s.Process.(dist.Directed)
	return d
}

var edgeReason = map[EdgeNeed]string{
	WholeGraph: "is stated for a static graph, all of whose edges are active in every iteration (full)",
	Rounds:     "averages over all edges at the end of each round (periodic(tau), or full for rounds of one)",
	Coins:      "averages over all edges when a common coin says so (coin(p), periodic(tau) or full)",
	Pairs: "averages in pairs, and an agent with several edges at once could not (one-edge, " +
		"one-edge-round-robin, matching, base(1), or a trace of pairs)",
	Broadcast: "has agents that broadcast to their neighbours (full, periodic(tau), coin(p), broadcast(p), " +
		"broadcast-one, broadcast-rr)",
	RoundPairs: "averages in pairs at the end of each round, and an agent with several edges at once could not " +
		"(matching, one-edge, one-edge-round-robin, base(1), or a trace of pairs)",
	OneWay: "sends one way (one-peer-exp, static-exp, push(k) or arcs(PATH))",
	Clocks: "has a clock on every edge, which rings as often as contacts says",
}

// settleWeights resolves weights auto, which are those of the edge process where it has some.
func (s *Setup) settleWeights() error {
	c := &s.Config
	_, weighted := s.Process.(dist.Weighted)
	switch {
	case c.Weights == "" && weighted && s.uses("weights"):
		c.Weights = weightsProcess
	case c.Weights == "":
		c.Weights = weightsConstant
	case c.Weights == weightsProcess && !weighted:
		return Invalid("weights", c.Weights, "edges %s have no weights of their own: use weights metropolis, or a "+
			"graph of rounds such as base(2)", c.Edges)
	case c.Weights == weightsMetropolis && weighted:
		return Invalid("weights", c.Weights, "edges %s have weights of their own, with which all agents have the "+
			"exact mean after some rounds: use weights process, or constant", c.Edges)
	}
	return nil
}

// settleRounds checks that local_steps agrees with the edge process, if both are given.
func (s *Setup) settleRounds() error {
	c := &s.Config
	if n := s.method.Edges; n != Rounds && n != Coins || len(s.Graph.Edges) == 0 {
		return nil
	}
	rate := s.Process.Rate(0)
	if steps := 1 / rate; c.LocalSteps != 0 && (steps > float64(c.LocalSteps)*1.001 ||
		steps < float64(c.LocalSteps)*0.999) {
		return Invalid("local_steps", c.LocalSteps, "edges %s make rounds of %.4g: leave one of the two out", c.Edges,
			steps)
	}
	return nil
}

// roundSteps returns the number of local steps of a round, or its mean if a coin ends rounds.
func (s *Setup) roundSteps() int {
	if len(s.Graph.Edges) == 0 { // a single agent
		return max(1, s.Config.LocalSteps)
	}
	return int(1/s.Process.Rate(0) + 0.5)
}

// StepSizes returns alpha and eta of iteration t: those of the first iteration of its round, unless
// the algorithm is Scheduled.
func (s *Setup) StepSizes(t int) (alpha, eta float64) {
	if _, ok := s.Algo.(algo.Scheduled); ok {
		return s.Schedule.At(t)
	}
	return s.Schedule.At(t - t%s.RoundLength())
}

// AllReducesAt reports whether iteration t of an AllReducer ends with an all-reduce.
func (s *Setup) AllReducesAt(t int) bool {
	return s.AllReduces && s.Graph.N > 1 && (t+1)%s.RoundLength() == 0
}

// WholeEvery returns after how many iterations an AllReducer with a mask exchanges all coordinates;
// 0: it never does.
func (s *Setup) WholeEvery() int {
	if m, ok := s.Algo.(algo.Interleaved); ok {
		return m.WholeEvery()
	}
	return 0
}

// Whole reports whether the all-reduce of iteration t has all coordinates.
func (s *Setup) Whole(t int) bool {
	every := s.WholeEvery()
	return s.Mask.Dense() || every > 0 && (t+1)%every == 0
}

// RoundLength returns the number of iterations of a round; 1 for algorithms without rounds.
func (s *Setup) RoundLength() int {
	if r, ok := s.Algo.(algo.Periodic); ok {
		return r.Period()
	}
	return 1
}

// checkRounds refuses evaluations inside a round, in which the models are not averaged yet. All
// evaluations lie between rounds if and only if the iterations are a multiple of the round and the
// rounds a multiple of the evaluations.
func (s *Setup) checkRounds() error {
	tau, c := s.RoundLength(), s.Config
	if tau == 1 {
		return nil
	}
	if c.Iterations%tau != 0 {
		near := fmt.Sprint(c.Iterations + tau - c.Iterations%tau)
		if c.Iterations > tau {
			near = fmt.Sprint(c.Iterations-c.Iterations%tau, " or ", near)
		}
		return Invalid("iterations", c.Iterations, "%s can be evaluated between its rounds of %d local steps "+
			"only, and the end is inside one: use %s iterations", c.Algo, tau, near)
	}
	if s.evals.every > 0 {
		return s.checkEvalRounds(tau)
	}
	if rounds := c.Iterations / tau; rounds%s.EvalCount() != 0 {
		return Invalid("eval_points", c.EvalPoints, "%s can be evaluated between its rounds of %d local steps only; "+
			"the run has %d rounds: use a number of evaluations that divides that, such as %d, or other iterations",
			c.Algo, tau, rounds, largestDivisor(rounds, s.EvalCount()))
	}
	return nil
}

// checkEvalRounds is checkRounds for eval_epochs.
func (s *Setup) checkEvalRounds(tau int) error {
	for k := range s.EvalCount() {
		if t := s.EvalPoint(k); t%tau != 0 {
			return Invalid("eval_epochs", s.Config.EvalEpochs, "%s can be evaluated between its rounds of %d local "+
				"steps only, and iteration %d is inside one: make an epoch's %.4g iterations a whole number of rounds",
				s.Config.Algo, tau, t, s.PerEpoch())
		}
	}
	return nil
}

// largestDivisor returns the largest divisor of n that is at most limit.
func largestDivisor(n, limit int) int {
	best := 1
	for k := 1; k*k <= n; k++ {
		if n%k != 0 {
			continue
		}
		for _, d := range [2]int{k, n / k} {
			if d <= limit {
				best = max(best, d)
			}
		}
	}
	return best
}
