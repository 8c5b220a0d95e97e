package algo

import (
	"fmt"
	"math"

	"fspda/device"
	"fspda/train/setting"
)

// Async is the asynchronous FSPDA-SA of the paper's appendix "Asynchronous Implementation". There
// is no global clock: gradients take any time, edges become active at random times, and no agent
// waits for another agent's gradient. Each agent counts its logical time t and its completed
// gradients g, and has a buffer (the paper's B_i) for one exchange. The counters are in its
// [LogicalClock]. The buffered difference D = own - other on the mask of the exchange is the vector
// "mail" of its State; it is zero if the buffer is empty. There are two events.
//
// Edge event of i and j ([Async.EdgeEvent]):
//
//	if a buffer is full: decline
//	behind by lag > 0: cancel the gradient, x ← x - lag·eta·lambda, t ← t_other ([Async.CatchUp])
//	both ends: mail ← D at the current x, on the mask of the common t ([Async.Deliver])
//	the end that was behind: gossip step at once, without a gradient; start a new gradient
//
// Completed gradient ([Async.Finish], then [Async.Move]); x is constant while a gradient runs:
//
//	g ← g + 1
//	buffer empty:  x ← x - eta·lambda - alpha·c·grad,               t ← t + 1
//	buffer full:   t' = max(t, t_other),  d = 1 + t' - t,
//	               x ← x - gamma·mail - d·eta·lambda - alpha·c·grad
//	               lambda ← lambda + beta·mail,   t ← t' + 1
//
// c corrects for agents that compute rarely. If i completes a gradient in the fraction p_i of its
// logical time, the stationary point solves Σ p_i·c_i·∇f_i = 0, so c must estimate 1/p_i, as the
// paper's text says; its Algorithm prints the inverse. See [Coefficient].
//
// In logical time this is FSPDA-SA: replayed round by round, with c times the gradient where one
// was completed and no gradient elsewhere, every agent has the x of its own t. Both ends of an
// exchange hold exact negatives as mail. Invariants: Σ(lambda + beta·mail) = 0, and Σ lambda = 0
// whenever all buffers are empty. Run as an [Algorithm] in rounds, Async is the synchronous
// FSPDA-SA.
//
// Departures: a mask is exchanged completely or not at all. Step sizes are constant and there is no
// momentum.
type Async struct {
	SA
	Protocol
}

// Asynchronous is an algorithm without a global clock. Its Protocol says what happens at an event,
// from the logical clocks alone; the other methods move the vectors of one agent.
type Asynchronous interface {
	Algorithm
	// EdgeEvent and Finish implement Protocol.
	EdgeEvent(i, j *LogicalClock) EdgeOutcome
	Finish(i *LogicalClock, gradient bool) Step
	// Posts lists the vectors of an exchange.
	Posts(s *State) []device.Vector
	// CatchUp moves an agent that was behind through lag >= 1 iterations without events.
	CatchUp(s *State, lag int, alpha, eta float64)
	// Deliver puts an exchange of the vectors of Posts into the buffer, on the coordinates of mask.
	Deliver(s *State, own, received []device.Vector, mask device.Index)
	// Move applies a step. It calls grad if the step has a gradient, a second time with the same
	// batch if the algorithm needs two.
	Move(s *State, st Step, alpha, eta float64, grad func(dst, x device.Vector) error) error
}

// RealTime is an asynchronous algorithm whose edges store their duals, so that the two ends of an
// edge can repair a failure of one of them. See [EdgeDual].
type RealTime interface {
	Asynchronous
	// Commit is Deliver for an edge that stores its dual.
	Commit(s *State, e *EdgeDual, own, received device.Vector, mask device.Index)
	// Adopt updates an edge to the state of the other end, whose S at (epoch, n) is other.
	Adopt(s *State, e *EdgeDual, epoch, n int, other device.Vector)
	// Drop removes the edge's dual and starts a new epoch.
	Drop(s *State, e *EdgeDual, epoch int)
	// Rejoin is CatchUp to iteration t for an agent that was absent.
	Rejoin(s *State, i *LogicalClock, t int, eta float64)
}

// Protocol is the protocol of asynchronous algorithms: what an event does to logical clocks.
type Protocol struct {
	Coef Coefficient
	CMax float64 // upper limit of c
}

var _ RealTime = Async{}

// The keys of this method.
var (
	coefficient = setting.Key{Name: "coef", Topic: "method", Default: string(Inverse),
		Choices: []string{string(Inverse), string(One), string(Printed)},
		Help: "fspda-async: gradient coefficient: inverse (1/frequency), one, or printed (as in the paper's " +
			"appendix)"}
	coefficientLimit = setting.Key{Name: "c_max", Topic: "method", Default: setting.AutoFloat{Auto: true},
		Range: "(0, inf)", Want: "a coefficient above 0, or auto",
		Help: "fspda-async: the largest gradient coefficient; auto is 10, or twice the factor between the slowest " +
			"and the fastest agent if that is more"}
	contacts = setting.Key{Name: "contacts", Topic: "method", Default: 1, Range: "[0, 1e4]", Want: "0 to 1e4",
		Help: "fspda-async: mean number of exchanges to which an agent is called in a unit of virtual time"}
	clock = setting.Key{Name: "clock", Topic: "method", Default: "virtual", Choices: []string{"virtual", "real"},
		Since: "0.1.0",
		Help: "fspda-async: virtual (the same run every time) or real (between processes: agents compute and " +
			"exchange at their own pace, without waiting for each other)"}
	giveUp = setting.Key{Name: "give_up", Topic: "method", Default: 5, Range: "(0, 1e6]",
		Want: "above 0 and at most 1e6 seconds", Resume: setting.Recorded,
		Help: "clock real: seconds after which an unfinished exchange no longer keeps an agent from other exchanges"}
)

// noIterations says why the members of an asynchronous run do not change at an iteration.
var noIterations = Membership{Rigid: "has no iterations in common at which members could change; with clock real, " +
	"drop_after drops agents of fspda-async"}

var fspdaAsync = Method{Name: "fspda-async",
	Keys:  []setting.Key{Gamma, Beta, coefficient, coefficientLimit, contacts, clock, giveUp},
	Check: asyncStable, New: func(s Settings) Algorithm {
		return Async{SA{Gamma: s.Param("gamma"), Beta: s.Param("beta")}, newProtocol(s)}
	}}

func newProtocol(s Settings) Protocol {
	return Protocol{Coef: Coefficient(s.Choice("coef")), CMax: s.Param("c_max")}
}

// asyncStable is checkGossipGain, and warns of agents whose coefficients c_max limits.
func asyncStable(r Run) ([]string, error) {
	warnings, err := checkGossipGain(r)
	return append(warnings, r.LimitedCoefficients()...), err
}

const asyncMail = saLambda + 1 // in State.Aux

// Coefficient is a rule for c, with t the logical time of the step and g the number of gradients,
// including this one.
type Coefficient string

const (
	Inverse Coefficient = "inverse" // (t+1)/g, at most CMax: 1/frequency
	One     Coefficient = "one"     // 1: weighs agents by their speed
	Printed Coefficient = "printed" // g/(t+1), as the paper's appendix prints it
)

func (Async) Name() string { return "fspda-async" }

func (a Async) Traits() Traits {
	t := a.SA.Traits()
	t.Aux, t.Mailbox = append(t.Aux, "mail"), []int{asyncMail}
	t.Edges, t.Asynchronous, t.RealTime = Clocks, a, a
	t.Updates, t.Constant, t.Membership = Updates{}, true, noIterations
	t.About = About{"k values of the model", "2·v·k·|E_t|", "2", exactOnSkew, "any graph, a clock on every edge",
		"FSPDA, appendix on asynchronous implementation"}
	return t
}

// LogicalClock holds the counters of an agent. All decisions of the protocol depend on them alone,
// not on vectors.
type LogicalClock struct {
	T     int  // logical time
	G     int  // gradients applied
	Full  bool // the buffer holds an exchange
	PeerT int  // the peer's time at that exchange
	// rounds of T for which the agent was absent; they do not count as time without a gradient
	Away int
}

// EdgeOutcome is the result of an edge event.
type EdgeOutcome struct {
	Declined bool // a buffer was full
	T        int  // the common time, which selects the mask
	Lag      int  // rounds that the end behind must catch up
	Behind   int  // the end that is behind, 0 or 1; valid if Lag > 0
}

// EdgeEvent applies an edge event to the clocks of its two ends.
func (p Protocol) EdgeEvent(i, j *LogicalClock) EdgeOutcome {
	if i.Full || j.Full {
		return EdgeOutcome{Declined: true}
	}
	m := EdgeOutcome{T: max(i.T, j.T)}
	switch {
	case i.T < j.T:
		m.Lag = j.T - i.T
	case j.T < i.T:
		m.Lag, m.Behind = i.T-j.T, 1
	}
	i.T, j.T = m.T, m.T
	i.Full, j.Full = true, true
	i.PeerT, j.PeerT = m.T, m.T
	return m
}

// Step is one update of an agent.
type Step struct {
	T      int     // its logical time
	Gossip bool    // it consumes the buffer
	Q      int     // the paper's d_i: number of times eta·lambda is subtracted
	C      float64 // coefficient of the gradient; 0: no gradient
}

// Finish advances the clock at a completed gradient, or with gradient unset at the gossip step of a
// cancelled one.
func (p Protocol) Finish(i *LogicalClock, gradient bool) Step {
	st := Step{T: i.T, Gossip: i.Full, Q: 1}
	if i.Full {
		st.T = max(i.T, i.PeerT)
		st.Q = 1 + st.T - i.T // 1 in this protocol: both ends have equal times after an edge event
	}
	if gradient {
		i.G++
		st.C = p.coefficient(st.T-i.Away, i.G)
	}
	i.T, i.Full = st.T+1, false
	return st
}

func (p Protocol) coefficient(t, g int) float64 {
	switch p.Coef {
	case Inverse:
		return math.Min(float64(t+1)/float64(g), p.CMax)
	case One:
		return 1
	case Printed:
		return float64(g) / float64(t+1)
	}
	panic(fmt.Sprintf("algo: unknown coefficient rule %q", p.Coef))
}

// Posts is the model.
func (Async) Posts(s *State) []device.Vector { return []device.Vector{s.X} }

// CatchUp applies the dual term of lag idle rounds to an agent that was behind.
func (a Async) CatchUp(s *State, lag int, _, eta float64) {
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -float64(lag) * eta, V: s.Aux[saLambda]})
}

// Deliver stores own - received in the buffer, on the coordinates of mask.
func (a Async) Deliver(s *State, own, received []device.Vector, mask device.Index) {
	s.do(device.AddDiff(own[0], received[0], mask, s.targets(device.Term{A: 1, V: s.Aux[asyncMail]})...))
}

// Move applies a step to the vectors. It calls grad if the step has a gradient.
func (a Async) Move(s *State, st Step, alpha, eta float64, grad func(dst, x device.Vector) error) error {
	lambda, mail := s.Aux[saLambda], s.Aux[asyncMail]
	s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X})
	if st.C != 0 {
		if err := grad(s.g, s.X); err != nil {
			return err
		}
		s.terms = append(s.terms, device.Term{A: -alpha * st.C, V: s.g})
	}
	s.terms = append(s.terms, device.Term{A: -float64(st.Q) * eta, V: lambda})
	if st.Gossip {
		s.terms = append(s.terms, device.Term{A: -a.Gamma, V: mail})
	}
	s.do(device.Combine(s.X, s.terms...))
	if st.Gossip {
		s.combine(lambda, device.Term{A: 1, V: lambda}, device.Term{A: a.Beta, V: mail})
		s.do(device.Combine(mail)) // empty the buffer
	}
	return nil
}
