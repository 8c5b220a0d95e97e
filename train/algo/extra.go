package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// EXTRA is the exact first-order algorithm of Shi, Ling, Wu and Yin (2015) on a static graph, with
// W~ = W + Delta·(I - W):
//
//	x^1     = W x^0 - alpha·g^0
//	x^{t+1} = (I + W) x^t - W~ x^{t-1} - alpha·(g^t - g^{t-1})
//
// The agent stores q, the sum of all past Delta·(I - W) x, which turns it into a one-step method.
// With D = own - other over all edges,
//
//	x ← x - alpha·g - q - Σ w·D        q ← q + Delta·Σ w·D
//
// The two forms have equal iterates. This one needs no old values of neighbours and no difference
// of nearly equal models, and shows that EXTRA is FSPDA-SA on a static graph without masks
// (equation 11). It requires 0 < Delta <= 1/2, usually 1/2, and eigenvalues of W above -1. With
// exact gradients the agents reach the optimum. Invariant: Σ q = 0; q tends to alpha·(∇F - ∇f_i).
type EXTRA struct {
	Delta float64
}

var delta = setting.Key{Name: "delta", Topic: "method", Default: 0.5, Range: "(0, 0.5]",
	Want: "above 0 and at most 0.5: W~ lies between W and (I+W)/2",
	Help: "extra: W~ = W + delta (I-W), at most 0.5"}

var extra = Method{Name: "extra", Keys: []setting.Key{delta}, Check: checkMixing,
	New: func(s Settings) Algorithm { return EXTRA{Delta: s.Param("delta")} }}

const extraQ = 0 // index of q in State.Aux

func (EXTRA) Name() string { return "extra" }

func (EXTRA) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"q"}, NewScratch: newSentModel,
			Tracked: Tracked{"q", func(alpha, _ float64) float64 { return alpha }}},
		Exchange:   Exchange{Edges: WholeGraph, Mixing: true},
		Needs:      Needs{Exact: true},
		Membership: Membership{Regroup: restart(extraQ)},
		About:      About{"the model", "2·v·d·|E_t|", "1", exactOnSkew, staticGraph, "Shi, Ling, Wu and Yin 2015"},
	}
}

func (a EXTRA) Local(s *State, r *Round) error {
	m := s.Scratch.(*sentModel)
	m.x = s.SendModel(r)
	return r.Grad(s.g, m.x)
}

// Mix applies the local and the received terms in one pass over memory instead of two.
func (a EXTRA) Mix(s *State, r *Round) error {
	q := s.Aux[extraQ]
	base := []device.Term{{A: 1, V: s.Scratch.(*sentModel).x}, {A: -r.Alpha, V: s.g}, {A: -1, V: q}}
	s.CombineDifferences(r, 0, FixedWeight, device.Term{A: -1, V: s.X}, base, device.Term{A: a.Delta, V: q})
	return nil
}
