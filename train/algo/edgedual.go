package algo

import "fspda/device"

// EdgeDual is the dual variable of one edge, as one of its ends keeps it: S_ij = β·ΣD over the
// exchanges of the edge, D = own - other. An algorithm needs only their sum over the edges of an
// agent, which is its lambda:
//
//	lambda_i + β·mail_i = Σ_j S_ij,    S_ij = -S_ji
//
// The second equation holds to the last bit, for both ends add exact negatives in the same order.
// So an edge is all that ever has to be put in order when one of its ends fails, and nobody else
// hears of it:
//
//   - one end has committed an exchange that the other has not (N tells): the other takes over the
//     negative of its S ([Async.Adopt]);
//   - the other end is gone for good: S is taken out of lambda, and what is left sums to zero
//     without it ([Async.Drop]).
//
// The price is a vector of length d for each edge of an agent.
type EdgeDual struct {
	Epoch int // how often the edge began anew
	N     int // exchanges committed since
	S     device.Vector
}

// Later tells whether (epoch, n) is a later state of the edge than e.
func (e *EdgeDual) OlderThan(epoch, n int) bool {
	return epoch > e.Epoch || epoch == e.Epoch && n > e.N
}

// Commit is [Async.Deliver] for an edge that keeps its dual. Mail that is unread adds up.
func (a Async) Commit(s *State, e *EdgeDual, own, heard device.Vector, mask device.Index) {
	s.Dev.AddDiff(own, heard, mask, s.targets(device.Term{A: 1, V: s.Aux[asyncMail]},
		device.Term{A: a.Beta, V: e.S})...)
	e.N++
}

// Adopt brings an edge up to where the other end is: other is its S at (epoch, n). What this end
// lacks moves lambda, and x as the exchanges would have done. An edge of an earlier epoch is
// dropped first.
func (a Async) Adopt(s *State, e *EdgeDual, epoch, n int, other device.Vector) {
	if e.Epoch < epoch {
		a.Drop(s, e, epoch)
	}
	lambda := s.Aux[saLambda]
	s.combine(lambda, device.Term{A: 1, V: lambda}, device.Term{A: -1, V: other}, device.Term{A: -1, V: e.S})
	if a.Beta != 0 {
		share := a.Gamma / a.Beta
		s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: share, V: other}, device.Term{A: share, V: e.S})
	}
	s.combine(e.S, device.Term{A: -1, V: other})
	e.N = n
}

// Drop takes the edge's dual out of lambda and begins a new epoch. Mail from that edge may be
// unread: it is part of S, so that lambda + β·mail is what it would be without the edge.
func (a Async) Drop(s *State, e *EdgeDual, epoch int) {
	lambda := s.Aux[saLambda]
	s.combine(lambda, device.Term{A: 1, V: lambda}, device.Term{A: -1, V: e.S})
	s.Dev.Combine(e.S)
	e.Epoch, e.N = epoch, 0
}

// Return is [Async.CatchUp] for an agent that may have been away for long: it makes up for at most
// CMax rounds, which is as many gradients as a coefficient makes up for. For the others it was not
// there.
func (a Async) Rejoin(s *State, i *LogicalClock, t int, eta float64) {
	lag := t - i.T
	steps := min(lag, max(1, int(a.CMax)))
	if steps > 0 {
		a.CatchUp(s, steps, eta)
	}
	i.Away += lag - steps
	i.T = t
}
