package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"fspda/dist"
	"fspda/internal/spelling"
	"fspda/train/algo"
	"fspda/train/setting"
)

// Method declares an algorithm: see [algo.Method]. Resolve refuses configurations that do not meet
// the needs of its traits.
type Method = algo.Method

// method is a method with the traits of its algorithm with default settings.
type method struct {
	Method
	traits algo.Traits
}

// keys lists the names of the keys that not every method reads.
func (m method) keys() (names []string) {
	for _, k := range m.Keys {
		names = append(names, k.Name)
	}
	return names
}

// prepare gets the traits of a method under the default settings r. The error names the declaration
// of the method that is wrong.
func prepare(m Method, r Resolved) (p method, err error) {
	p.Method = m
	if m.Name == "" || m.New == nil {
		return p, errors.New("a method needs a Name and a New")
	}
	if err := setting.Fault(m.Params); err != nil {
		return p, err
	}
	r.Algo, r.given.Algo = m.Name, m.Name
	r.Params = settle(m.Params, nil)
	p.traits = m.New(r.settings(p)).Traits()
	if p.traits.Edges == nil {
		var kinds []string
		for _, e := range algo.EdgeKinds() {
			kinds = append(kinds, "algo."+e.Name)
		}
		return p, fmt.Errorf("the traits of its algorithm name no Edges, so that nobody knows when its agents "+
			"communicate: set Exchange.Edges to %s", setting.Either(kinds))
	}
	return p, nil
}

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
	builtin  []method // The methods of this module, which init prepares when the keys have their defaults.
	methods  []method // All methods; Register only appends, so that callers of registered may share it.
)

// prepareAll prepares the methods of this module.
func prepareAll(all []Method) (prepared []method) {
	r := resolving(Default())
	for _, m := range all {
		p, err := prepare(m, r)
		if err != nil {
			panic(fmt.Sprintf("config: method %q: %v", m.Name, err))
		}
		prepared = append(prepared, p)
	}
	return prepared
}

// Register adds an algorithm to those that Config.Algo can name. Call it before the first run, for
// instance in an init function. It panics if the name is taken, and if the method lacks something
// that it needs. Keys that the method declares and no configuration has yet are registered, too.
func Register(m Method) {
	for _, k := range m.Keys {
		if _, ok := Lookup(k.Name); !ok && k.Help != "" {
			RegisterKey(k)
		}
	}
	p, err := prepare(m, resolving(Default()))
	if err != nil {
		panic(fmt.Sprintf("config: Register of %q: %v", m.Name, err))
	}
	registry.Lock()
	defer registry.Unlock()
	if slices.ContainsFunc(methods, func(o method) bool { return o.Name == m.Name }) {
		panic(fmt.Sprintf("config: Register of %q: the name is taken", m.Name))
	}
	methods = append(methods, p)
}

func registered() []method {
	registry.RLock()
	defer registry.RUnlock()
	return methods
}

// Algorithms lists the names that Config.Algo can have.
func Algorithms() []string { return withFeature(func(method) bool { return true }) }

// findMethod returns the method that Config.Algo names, and whether it exists.
func (c Config) findMethod() (m method, ok bool) {
	registry.RLock()
	defer registry.RUnlock()
	if at := slices.IndexFunc(methods, func(m method) bool { return m.Name == c.Algo }); at >= 0 {
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
	return ok && m.traits.Edges.Clocks
}

// settleMethod resolves the keys of the optimizer, and refuses a network whose loss decays weights
// that the optimizer decays. decay is the coefficient of the L2 term of its loss.
func (s *Setup) settleMethod(decay float64) error {
	warnings, err := s.Config.settleOptimizer(s.method)
	if o := s.Config.optimizer(); o.Check != nil && err == nil {
		var more []string
		more, err = o.Check(s.Config.optimizerSettings(o, s.ModelSize))
		warnings = append(warnings, more...)
	}
	if s.Warnings = append(s.Warnings, warnings...); err != nil {
		return err
	}
	if decay > 0 && s.Config.DecayForm == decayDecoupled {
		return Invalid("decay_form", decayDecoupled, "the loss of the network has an L2 term of coefficient %v, and "+
			"weights would be decayed twice: make the network with the L2 of Config.Network", decay)
	}
	return nil
}

// admit refuses keys that the method does not use, and resolves edges and mask where they are auto.
func (s *Setup) admit() error {
	c, m := &s.Config, s.method
	if o := c.optimizer(); c.Schedule != scheduleConstant && o.Constant {
		return Invalid("schedule", c.Schedule, "optimizer %s takes the place of a schedule: use schedule constant, "+
			"with warmup_iterations for a warm-up", o.Name)
	}
	if c.Schedule != scheduleConstant && s.Traits.Constant {
		return Invalid("schedule", c.Schedule, "%s has no step size that could follow it: use schedule constant",
			m.Name)
	}
	if c.WarmupT > 0 && s.Traits.Constant {
		return Invalid("warmup_iterations", c.WarmupT, "%s has no step size that could grow: leave it out", m.Name)
	}
	if c.Dual != "same-time" && !m.uses("dual") {
		return Invalid("dual", c.Dual, "only fspda-sa has this form of the released program: use dual same-time")
	}
	if s.Traits.Edges.Collective {
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
	case !s.Traits.Masks:
		c.Mask, c.Density = "all", 1
	case c.Mask == "":
		c.Mask = Chosen(s.Traits.Mask)
	}
}

// settleSteps resolves local_steps 0.
func (s *Setup) settleSteps() {
	if c := &s.Config; c.LocalSteps == 0 {
		c.LocalSteps = cmp.Or(s.Traits.LocalSteps, defaultSteps)
	}
}

// withFeature lists the algorithms for which has returns true.
func withFeature(has func(m method) bool) (names []string) {
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
	if s.Traits.Masks {
		return nil
	}
	masked := func() string {
		return strings.Join(withFeature(func(m method) bool { return m.traits.Masks }), ", ")
	}
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
	c, m, kind := &s.Config, s.method, s.Traits.Edges
	if c.LocalSteps != 0 && !kind.AtRoundEnds && !kind.InRounds && !s.Traits.StepsPerExchange {
		return Invalid("local_steps", c.LocalSteps, "%s has no rounds: set local_steps 0 and say with edges when "+
			"to communicate, such as edges 'periodic(%d)'", m.Name, c.LocalSteps)
	}
	if kind.AtRoundEnds && !kind.OptionalRounds {
		s.settleSteps()
	}
	if c.Edges == "" {
		if own, ok := dist.ProcessOfGraph(c.Graph); ok && fitsGraph(kind, own) {
			c.Edges = Chosen(own)
		} else {
			c.Edges = Chosen(kind.Auto(c.Graph, cmp.Or(c.LocalSteps, defaultSteps)))
		}
		return nil
	}
	if !kind.Fits(spelling.Name(string(c.Edges))) && !fitsGraph(kind, string(c.Edges)) {
		return Invalid("edges", c.Edges, "%s %s: use edges auto", m.Name, kind.Reason)
	}
	return nil
}

// GradientsPerBatch is the number of gradients that an asynchronous algorithm takes of a batch.
func (s *Setup) GradientsPerBatch() int { return max(1, s.Traits.Gradients) }

// fitsGraph reports whether an algorithm can use a process that a graph brings along.
func fitsGraph(kind *algo.Edges, process string) bool {
	switch kind.Own {
	case algo.AnyOwnProcess:
		return true
	case algo.OwnPairs:
		return dist.InPairs(process)
	case algo.OwnArcs:
		return dist.OneWay(process)
	}
	return false
}

// Directed returns the edge process of an algorithm on directed graphs; nil: it is none.
func (s *Setup) Directed() dist.Directed {
	if !s.Traits.Edges.Directed {
		return nil
	}
	return s.Process.Directed()
}

// settleWeights resolves weights auto: the edge process's where it has some.
func (s *Setup) settleWeights() error {
	c := &s.Config
	weighted := s.Process.Weighted()
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
	if !s.Traits.Edges.InRounds || len(s.Graph.Edges) == 0 {
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
	if s.Process == nil || len(s.Graph.Edges) == 0 { // not made yet, or of a single agent
		return max(1, s.Config.LocalSteps)
	}
	return int(1/s.Process.Rate(0) + 0.5)
}

// StepSizes returns alpha and eta of iteration t: the step sizes of the first iteration of its
// round, unless they follow the schedule within a round.
func (s *Setup) StepSizes(t int) (alpha, eta float64) {
	if s.Traits.Scheduled {
		return s.Schedule.At(t)
	}
	return s.Schedule.At(t - t%s.RoundLength())
}

// AllReducesAt reports whether iteration t ends with an all-reduce.
func (s *Setup) AllReducesAt(t int) bool {
	return s.AllReduces() && s.Graph.N > 1 && (t+1)%s.RoundLength() == 0
}

// AllReduces reports whether the agents communicate by all-reduce.
func (s *Setup) AllReduces() bool { return s.Traits.Edges.Reduces }

// Partners returns the agents with which an agent exchanges: its neighbours in the graph, or nil for
// all others.
func (s *Setup) Partners(agent int) []int {
	if n := s.Graph.N; s.AllReduces() || len(s.Graph.Edges) == n*(n-1)/2 {
		return nil
	}
	return s.Graph.Neighbours(agent)
}

// InRing reports whether the agents communicate by all-reduces over a ring, as far as costs go.
func (s *Setup) InRing() bool { return s.AllReduces() && !s.Traits.Edges.Gathers }

// Whole reports whether the all-reduce of iteration t has all coordinates.
func (s *Setup) Whole(t int) bool {
	every := s.Traits.WholeEvery
	return s.Mask.Dense() || every > 0 && (t+1)%every == 0
}

// RoundLength returns the number of iterations of a round; 1 for algorithms without rounds.
func (s *Setup) RoundLength() int { return s.Traits.RoundLength() }

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
