package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// LED is local exact diffusion (Alghunaim 2024): rounds of Tau local steps with a dual correction,
// then one averaging with the mixing matrix W over all edges of the graph. With D = own - other of
// the model after the last local step,
//
//	x ← x - alpha·u - y/Tau
//	at the end of a round:  y ← y + Σ w·D        x ← x - Σ w·D
//
// The second line is x ← W x and y ← y + (x before - x after). The published dual step size beta is
// 1/Tau here. It requires eigenvalues of W above -1/3, whatever Tau. Below that, differences
// between agents grow in directions of little curvature.
//
// Invariant: Σ y = 0. The mean model moves by -alpha·mean(u) in every iteration. With exact
// gradients the agents reach the optimum with y = alpha·Tau·(∇F - ∇f_i), times 1/(1-mu) with
// momentum, which continues across rounds. LED is Scaffnew with averaging every Tau iterations, p =
// 1/Tau, c = 1 and h = -y/(alpha·Tau).
type LED struct {
	Tau int // local steps per round
	Descent
}

var led = Method{Name: "led", Keys: []setting.Key{LocalSteps}, Check: checkDiffusion,
	New: func(s Settings) Algorithm { return LED{Tau: s.RoundSteps, Descent: s.Descent} }}

const ledY = 0 // in State.Aux

func (LED) Name() string { return "led" }

func (a LED) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"y"}, Tracked: Tracked{"y", a.limit}, NewScratch: newSentModel},
		Exchange:   Exchange{Edges: RoundGraph, Mixing: true},
		Rounds:     Rounds{Period: a.Tau},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: AnyPlacement},
		Membership: Membership{Regroup: restart(ledY)},
		About: About{"the model, at the end of a round", "2·v·d·|E_t| a round", "1", exactOnSkew,
			staticGraph + ", in rounds; eigenvalues of W above -1/3", "Alghunaim 2024"},
	}
}

// limit is the multiple of ∇F - ∇f_i to which y tends: alpha·Tau/(1-mu), without 1/(1-mu) inside
// the momentum.
func (a LED) limit(alpha, _ float64) float64 { return alpha * float64(a.Tau) / a.inverseGain() }

func (a LED) Local(s *State, r *Round) error {
	if err := a.Step(s, r, r.Alpha, s.X, device.Term{A: 1 / float64(a.Tau), V: s.Aux[ledY]}); err != nil {
		return err
	}
	if len(r.Links) > 0 {
		sent, x := s.handOver(r)
		s.post(r, sent)
		s.Scratch.(*sentModel).x = x
	}
	return nil
}

// Mix writes all of the model, from that of Local, also where nothing was received.
func (a LED) Mix(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return nil
	}
	sent := s.Scratch.(*sentModel)
	sent.base[0] = device.Term{A: 1, V: sent.x}
	s.CombineDifferences(r, 0, FixedWeight, device.Term{A: -1, V: s.X}, sent.base[:], device.Term{A: 1, V: s.Aux[ledY]})
	return nil
}
