package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// KGT is K-GT, gradient tracking with local steps (Liu, Lin, Koloskova and Stich 2024): rounds of K
// local steps with a correction c, then one exchange of two vectors over all edges of the graph.
// With s the model at the start of the round, z = (s - x)/(K·alpha) the mean corrected direction of
// the round and v = s - EtaS·K·alpha·z,
//
//	x ← x - alpha·(u + c)
//	at the end of a round:  c ← c - z + W z        x ← W v
//
// As differences: c ← c - Σ w·(z own - z other), x ← v - Σ w·(v own - v other). The message holds s
// - x, which is z times a factor that all agents share. c starts at zero; the original method
// starts at -g_i + mean g. At alpha = 0 the gradients carry no information, and c stays.
//
// Invariant: Σ c = 0. The mean model moves by -EtaS·alpha·Σ mean(u) in a round. With exact
// gradients the agents reach the optimum with c = ∇F - ∇f_i, times 1/(1-mu) with momentum, which
// continues across rounds.
type KGT struct {
	K    int     // local steps per round
	EtaS float64 // outer step size; 1 keeps the result of the local steps
	Descent
}

var outerStep = setting.Key{Name: "outer_step", Topic: "method", Default: 1, Range: "(0, inf)",
	Want: "a step size above 0; 1 goes where the local steps went",
	Help: "kgt: outer step eta_s; 1 keeps the result of the local steps"}

var kgt = Method{Name: "kgt", Keys: []setting.Key{LocalSteps, outerStep}, Check: checkMixing,
	New: func(s Settings) Algorithm {
		return KGT{K: s.RoundSteps, EtaS: s.Param("outer_step"), Descent: s.Descent}
	}}

const (
	kgtC     = iota // in State.Aux
	kgtStart        // x at the start of the round
)

func (KGT) Name() string { return "kgt" }

func (a KGT) Traits() Traits {
	return Traits{
		// c tends to (∇F - ∇f_i)/(1-mu), or ∇F - ∇f_i inside the momentum.
		Memory:     Memory{Aux: []string{"c", "start"}, Tracked: Tracked{"c", a.trackedLimit}},
		Exchange:   Exchange{Edges: RoundGraph, Mixing: true, Vectors: 2}, // s - x and v
		Rounds:     Rounds{Period: a.K},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: LocalOnly},
		Membership: Membership{Regroup: restart(kgtC)},
		About: About{"two vectors, at the end of a round", "4·v·d·|E_t| a round", "2", exactOnSkew,
			staticGraph + ", in rounds", "Liu, Lin, Koloskova and Stich 2024"},
	}
}

func (a KGT) Local(s *State, r *Round) error {
	start := s.Aux[kgtStart]
	if r.T%a.K == 0 {
		s.combine(start, device.Term{A: 1, V: s.X})
	}
	if err := a.Step(s, r, r.Alpha, s.X, device.Term{A: r.Alpha, V: s.Aux[kgtC]}); err != nil {
		return err
	}
	if (r.T+1)%a.K != 0 {
		return nil
	}
	moved := s.g // the gradient is no longer needed
	s.combine(moved, device.Term{A: 1, V: start}, device.Term{A: -1, V: s.X})
	if a.EtaS != 1 {
		s.combine(s.X, device.Term{A: 1, V: start}, device.Term{A: -a.EtaS, V: moved})
	}
	s.Send(r, moved, s.X)
	return nil
}

func (a KGT) Mix(s *State, r *Round) error {
	gain := 0.0
	if r.Alpha > 0 {
		gain = 1 / (float64(a.K) * r.Alpha)
	}
	s.AddDifferences(r, 0, FixedWeight, device.Term{A: -gain, V: s.Aux[kgtC]})
	s.AddDifferences(r, 1, FixedWeight, device.Term{A: -1, V: s.X})
	return nil
}
