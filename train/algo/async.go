package algo

import (
	"fmt"
	"math"

	"fspda/device"
)

// Async is FSPDA-SA without a global clock (the paper's asynchronous variant): gradients take their
// time, pairs exchange when the clock of their edge rings, and nobody waits for a gradient. Each
// agent counts its own logical time t and its gradients g, and has a mailbox for one exchange. Both
// are in its [Desk]; the vectors are in its State, where "mail" is D = own - other on the mask of
// the unread exchange, and zero while there is none. The protocol is made of two events.
//
// Edge event of i and j ([Async.Meet]):
//
//	if a mailbox is full, decline: nothing happens
//	if one is behind by lag > 0: cancel its gradient, x ← x - lag·eta·lambda, t ← that of the other      ([Async.CatchUp])
//	both: mail ← D of the x of now, on a mask drawn for the common t                                  ([Async.Deliver])
//	the one that was behind makes its gossip step at once, without a gradient, and starts a new one
//
// Completion of a gradient ([Async.Finish], then [Async.Move]), taken at the x of now, for x does
// not change while one runs:
//
//	g ← g + 1
//	mailbox empty:  x ← x - eta·lambda - alpha·c·grad,               t ← t + 1
//	mailbox full:   t' = max(t, t_other),  q = 1 + t' - t,
//	                x ← x - gamma·mail - q·eta·lambda - alpha·c·grad,   lambda ← lambda + beta·mail,   t ← t' + 1
//
// c makes up for agents that compute rarely: where i finishes a gradient in the share p_i of its
// logical time, the stationary point solves Σ p_i·c_i·∇f_i = 0, so c has to estimate 1/p_i. That is
// what the paper's text says; its appendix prints the inverse. See [Coefficient].
//
// Seen in logical time it is FSPDA-SA: replayed round by round, with c times the gradient where one
// was finished and nothing where none was, every agent has the x of its own t. Both ends of an
// exchange have exact negatives as mail, so Σ(lambda + beta·mail) stays zero, and Σ lambda is zero
// whenever all mailboxes are empty. As an [Algorithm] of rounds it is the synchronous FSPDA-SA
// itself.
//
// Departures: a mask is exchanged whole or not at all. Step sizes are constant and there is no
// heavy ball.
type Async struct {
	SA
	Coef Coefficient
	CMax float64 // the largest c
}

var _ Algorithm = Async{}

const asyncMail = saLambda + 1 // in State.Aux

// Coefficient is a rule for c, with t the logical time of the step and g the number of gradients,
// this one included.
type Coefficient string

const (
	Inverse Coefficient = "inverse" // (t+1)/g, at most CMax: 1/frequency
	One     Coefficient = "one"     // 1: weighs agents by their speed
	Printed Coefficient = "printed" // g/(t+1), as the paper's appendix prints it
)

func (Async) Name() string { return "fspda-async" }

func (Async) Aux() []string { return []string{"lambda", "mail"} }

// Desk is what the protocol knows of an agent besides its vectors. No decision depends on a vector.
type LogicalClock struct {
	T     int  // logical time
	G     int  // gradients applied
	Full  bool // the mailbox holds an exchange
	PeerT int  // the other end's time at that exchange
	// of T, rounds for which the agent was not there at all: they say nothing of how often it
	// computes
	Away int
}

// Meeting is what an edge event comes to.
type EdgeOutcome struct {
	Declined bool // a mailbox was full
	T        int  // the common time, which keys the mask
	Lag      int  // what the one behind has to catch up
	Behind   int  // 0 or 1: which of the two; only where Lag > 0
}

// Meet plays an edge event on the desks of its two ends.
func (a Async) EdgeEvent(i, j *LogicalClock) EdgeOutcome {
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

// Step is one move of an agent.
type Step struct {
	T      int     // logical time it is made at
	Gossip bool    // it reads the mailbox
	Q      int     // how often eta·lambda is subtracted
	C      float64 // coefficient of the gradient; 0: there is none
}

// Finish plays the end of a gradient on its desk, or, with gradient unset, the gossip step of a
// cancelled one.
func (a Async) Finish(i *LogicalClock, gradient bool) Step {
	st := Step{T: i.T, Gossip: i.Full, Q: 1}
	if i.Full {
		st.T = max(i.T, i.PeerT)
		st.Q = 1 + st.T - i.T // 1 in this protocol: both ends have caught up when they meet
	}
	if gradient {
		i.G++
		st.C = a.coefficient(st.T-i.Away, i.G)
	}
	i.T, i.Full = st.T+1, false
	return st
}

func (a Async) coefficient(t, g int) float64 {
	switch a.Coef {
	case Inverse:
		return math.Min(float64(t+1)/float64(g), a.CMax)
	case One:
		return 1
	case Printed:
		return float64(g) / float64(t+1)
	}
	panic(fmt.Sprintf("algo: no coefficient is named %q", a.Coef))
}

// CatchUp makes up for the idle rounds of an agent that was behind.
func (a Async) CatchUp(s *State, lag int, eta float64) {
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -float64(lag) * eta, V: s.Aux[saLambda]})
}

// Deliver puts own - heard into the mailbox, on the coordinates of mask.
func (a Async) Deliver(s *State, own, heard device.Vector, mask device.Index) {
	s.Dev.AddDiff(own, heard, mask, s.targets(device.Term{A: 1, V: s.Aux[asyncMail]})...)
}

// Move applies a step. grad is called where the step has a gradient.
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
	s.Dev.Combine(s.X, s.terms...)
	if st.Gossip {
		s.combine(lambda, device.Term{A: 1, V: lambda}, device.Term{A: a.Beta, V: mail})
		s.Dev.Combine(mail) // read
	}
	return nil
}
