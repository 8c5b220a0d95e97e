package algo

import (
	"fspda/device"
	"fspda/train/setting"
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
// Early is EF21 gossip: an agent compresses before it takes its step,
//
//	q_i = Q(x_i - xhat_i)    x_i ← x_i - alpha·u_i + theta·(s_i - xhat_i)
//
// so that messages travel while gradients are computed. State, messages and invariants are the
// same.
//
// Departure: xhat and s start at zero, as in the authors' reference program, so the first messages
// carry the model itself.
type CHOCO struct {
	Theta float64 // consensus step size; smaller for sparser compressors
	Early bool    // compress before the gradient step
	Descent
}

// The keys of this method.
var (
	referenceBits = setting.Key{Name: "reference_bits", Topic: "exchange", Default: "honest",
		Choices: []string{"honest", "published"},
		Help:    "choco: how bits_reference is counted: honest, or published, as the released program does"}
	early = setting.Key{Name: "early", Topic: "exchange", Default: false, Since: "0.2.0",
		Help: "choco: compress and send before the gradient is computed (EF21)"}
)

var choco = Method{Name: "choco", Keys: []setting.Key{Theta, compress, norms, referenceBits, early},
	Check: checkCompressed, New: func(s Settings) Algorithm {
		return CHOCO{Theta: s.Param("theta"), Early: s.Flag("early"), Descent: s.Descent}
	}}

const (
	chocoCopy = iota // in State.Aux: xhat_i
	chocoSum         // s_i
)

func (CHOCO) Name() string { return "choco" }

func (a CHOCO) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"xhat", "s"},
			// The term w_ii·q_i that the agent sends in an iteration.
			NewScratch: func() any { return &device.SparseTerm{} }},
		Exchange:   Exchange{Edges: Broadcast, Code: CompressedCode, Masks: true, Mixing: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: a.regroup},
		About: About{"a compressed difference", "payload of each message", "2", biasedOnSkew,
			"any graph, agents that broadcast", "Koloskova, Stich and Jaggi 2019, algorithm 2; early: EF21"},
	}
}

// regroup begins the public copies anew, as the models themselves.
func (CHOCO) regroup(s *State, g *Group) error {
	return s.republish(g, s.X, s.Aux[chocoCopy], s.Aux[chocoSum])
}

func (a CHOCO) Local(s *State, r *Round) error {
	if a.Early { // messages travel while the gradient is computed
		if err := a.announce(s, r); err != nil {
			return err
		}
		return a.Step(s, r, r.Alpha, s.X)
	}
	if err := a.planDescent(s, r, r.Alpha, s.X); err != nil {
		return err
	}
	return a.announce(s, r)
}

func (a CHOCO) announce(s *State, r *Round) (err error) {
	own := s.Scratch.(*device.SparseTerm)
	*own, err = s.announce(r, 0, s.X, s.Aux[chocoCopy])
	return err
}

func (a CHOCO) Mix(s *State, r *Round) error {
	return s.gossip(r, announcement{algo: a.Name(), of: 1}, *s.Scratch.(*device.SparseTerm), a.Theta, s.X, chocoCopy,
		chocoSum)
}
