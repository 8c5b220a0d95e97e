package algo

import "fspda/device"

// EdgeDual is the dual variable of one edge, as stored by one of its ends: S_ij = β·ΣD over the
// exchanges of the edge, D = own - other. The algorithm itself needs only their sum over the edges
// of an agent, which is its lambda:
//
//	lambda_i + β·mail_i = Σ_j S_ij,    S_ij = -S_ji
//
// The second equation holds to the last bit, since both ends add exact negatives in the same order.
// So a failure of one end can be repaired between the two ends of the edge:
//
//   - One end has committed an exchange that the other has not (N shows this): the other end takes
//     the negative of its S ([Async.Adopt]).
//   - The other end has failed permanently: S is removed from lambda, and the remaining duals still
//     sum to zero ([Async.Drop]).
//
// It costs a vector of length d for each edge of an agent.
type EdgeDual struct {
	Epoch int // number of restarts of the edge
	N     int // exchanges committed in this epoch
	S     device.Vector
}

// OlderThan reports whether e is an older state of the edge than (epoch, n).
func (e *EdgeDual) OlderThan(epoch, n int) bool {
	return epoch > e.Epoch || epoch == e.Epoch && n > e.N
}

// Commit is [Async.Deliver] for an edge that stores its dual. Unread mail accumulates.
func (a Async) Commit(s *State, e *EdgeDual, own, received device.Vector, mask device.Index) {
	s.do(device.AddDiff(own, received, mask, s.targets(device.Term{A: 1, V: s.Aux[asyncMail]},
		device.Term{A: a.Beta, V: e.S})...))
	e.N++
}

// Adopt updates an edge to the state of the other end, whose S at (epoch, n) is other. It corrects
// lambda, and x as the missed exchanges would have done. If the edge is of an earlier epoch, it is
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

// Drop removes the edge's dual from lambda and starts a new epoch. Unread mail of that edge is part
// of S, so afterwards lambda + β·mail is the value without the edge.
func (a Async) Drop(s *State, e *EdgeDual, epoch int) {
	lambda := s.Aux[saLambda]
	s.combine(lambda, device.Term{A: 1, V: lambda}, device.Term{A: -1, V: e.S})
	s.do(device.Combine(e.S))
	e.Epoch, e.N = epoch, 0
}

// Rejoin is [Async.CatchUp] for an agent that was absent. It applies at most CMax rounds, the limit
// of the gradient coefficient, and counts the others as absence.
func (a Async) Rejoin(s *State, i *LogicalClock, t int, eta float64) {
	lag := t - i.T
	steps := min(lag, max(1, int(a.CMax)))
	if steps > 0 {
		a.CatchUp(s, steps, 0, eta)
	}
	i.Away += lag - steps
	i.T = t
}
