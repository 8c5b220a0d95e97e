package algo

import (
	"slices"

	"fspda/device"
)

// CHOCO is CHOCO-SGD (Koloskova, Stich, Jaggi, 2019, algorithm 2): gossip with compressed
// differences. Every agent has a public copy xhat_i of its model, known to all its neighbours, and
// s_i = Σ_j w_ij·xhat_j over its neighbours and itself. With Q the compressor and W the mixing
// matrix,
//
//	y_i = x_i - alpha·u_i
//	q_i = Q(y_i - xhat_i) if i is active, else 0
//	xhat_i ← xhat_i + q_i
//	s_i ← s_i + Σ_j w_ij·q_j            (j = i included)
//	x_i ← y_i + theta·(s_i - xhat_i)    (active or not)
//
// In the original all agents are active. In the broadcast form (the node fraction of the paper's
// experiments) only some are, and each of them reaches all its neighbours. A partial delivery would
// make s differ from W·xhat permanently, so a missing message is an error.
//
// For every compressor the mean model moves by -alpha·mean(u). Invariant: s = W·xhat. With Q the
// identity and theta = 1 it is x ← W(x - alpha·u), adapt-then-combine. It is biased if agents hold
// different data: the consensus error and the offset of the mean are proportional to alpha.
//
// Departure: xhat and s start at zero, as in the authors' reference program, so the first messages
// carry the model itself.
type CHOCO struct {
	Theta float64 // consensus step size; smaller for sparser compressors
	Descent
}

var (
	_ Broadcast = CHOCO{}
	_ Scratcher = CHOCO{}
)

const (
	chocoCopy = iota // in State.Aux: xhat_i
	chocoSum         // s_i
)

func (CHOCO) Name() string { return "choco" }

// Broadcast marks one-way messages.
func (CHOCO) Broadcast() {}

func (CHOCO) Aux() []string { return []string{"xhat", "s"} }

// NewScratch returns the term w_ii·q_i that the agent sends in an iteration.
func (CHOCO) NewScratch(func() device.Vector) any { return &device.SparseTerm{} }

func (a CHOCO) Local(s *State, r *Round) error {
	if err := a.descend(s, r, r.Alpha, s.X); err != nil {
		return err
	}
	own := s.Scratch.(*device.SparseTerm)
	*own = device.SparseTerm{}
	if !r.Active {
		return nil
	}
	// the gradient is no longer needed
	s.combine(s.g, device.Term{A: 1, V: s.X}, device.Term{A: -1, V: s.Aux[chocoCopy]})
	q, err := r.Compress(s.g)
	if err != nil {
		return err
	}
	for i := range r.Links {
		r.Post(i, q.Vectors...)
	}
	s.add(s.Aux[chocoCopy], device.SparseTerm{A: 1, V: q.Vectors[0], Idx: q.Index})
	*own = device.SparseTerm{A: r.SelfWeight, V: q.Vectors[0], Idx: q.Index}
	return nil
}

func (a CHOCO) Mix(s *State, r *Round) error {
	if err := a.collect(s, r); err != nil {
		return err
	}
	sum := s.Aux[chocoSum]
	if len(s.parts) > 1 && r.Shared != nil && equalWeights(s.parts) {
		w := s.parts[0].A
		for i := range s.parts {
			s.parts[i].A = 1
		}
		all := r.Shared(0, s.fill.parts)
		s.combine(sum, device.Term{A: 1, V: sum}, device.Term{A: w, V: all})
	} else {
		s.Dev.ScatterAdd(sum, s.parts...)
	}
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: a.Theta, V: sum},
		device.Term{A: -a.Theta, V: s.Aux[chocoCopy]})
	return nil
}

// collect lists the received terms and the agent's own term, ordered by agent.
func (a CHOCO) collect(s *State, r *Round) error {
	s.parts = s.parts[:0]
	at := 0
	for i := range r.Links {
		l := &r.Links[i]
		if l.PeerInactive {
			continue
		}
		if l.Received == nil {
			return &MissingMessageError{Algorithm: a.Name(), T: r.T, Self: r.Self, Peer: l.Peer}
		}
		s.parts = append(s.parts, device.SparseTerm{A: l.FixedWeight, V: l.Received[0], Idx: l.Mask})
		if l.Peer < r.Self {
			at = len(s.parts)
		}
	}
	if r.Active {
		s.parts = slices.Insert(s.parts, at, *s.Scratch.(*device.SparseTerm))
	}
	return nil
}

// equalWeights reports whether all weights are equal after rounding to float32. The agent's own
// weight is 1 minus the others, so it may differ in the last bits of float64.
func equalWeights(parts []device.SparseTerm) bool {
	return !slices.ContainsFunc(parts, func(p device.SparseTerm) bool { return float32(p.A) != float32(parts[0].A) })
}
