package algo

import (
	"fmt"

	"fspda/device"
	"fspda/train/setting"
)

// Scaffnew is Decen-Scaffnew, decentralized ProxSkip (Mishchenko, Malinovsky, Stich and Richtárik
// 2022, over a mixing matrix W): local steps with a control variate, and an averaging step whenever
// a coin shared by all agents comes up. With D = own - other of the model after the local step,
// over all edges of the graph,
//
//	x ← x - alpha·(u - h)
//	coin:  h ← h - (p·c/alpha)·Σ w·D        x ← x - c·Σ w·D
//
// The second line is x ← (1-c)·x + c·W x and h ← h + (p/alpha)·(change of x). The published step of
// the averaging is tau = p·c/alpha. It requires 0 < c <= 1. For the eigenvalues w of W,
// c·(1-w) <= 1 is safe. Above 4/3, differences between agents can grow in directions of little
// curvature, and do so with rounds of equal length. c stays constant under a schedule. At alpha = 0
// the gradients carry no information, and h stays.
//
// Invariant: Σ h = 0. The mean model moves by -alpha·mean(u) in every iteration. With exact
// gradients the agents reach the optimum with h = ∇f_i, times 1/(1-mu) with momentum.
type Scaffnew struct {
	P float64 // probability of averaging
	C float64 // step size of the averaging
	Descent
}

var share = setting.Key{Name: "share", Topic: "method", Default: 1, Range: "(0, 1]",
	Want: "above 0 and at most 1: the share c of the averaging step",
	Help: "scaffnew: share c of the averaging step, at most 1"}

var scaffnew = Method{Name: "scaffnew", Keys: []setting.Key{LocalSteps, share}, Check: scaffnewStable,
	New: func(s Settings) Algorithm { return Scaffnew{P: s.Rate, C: s.Param("share"), Descent: s.Descent} }}

// scaffnewStable warns where the averaging (1-share)·I + share·W is not that of checkDiffusion: of
// rounds of equal length, scaffnew is led with that matrix. Where a coin ends rounds it may
// converge.
func scaffnewStable(r Run) ([]string, error) {
	if _, err := checkMixing(r); err != nil || r.Settings().Agents == 1 {
		return nil, err
	}
	share, spread := r.Settings().Param("share"), 1-r.LeastEigenvalue()
	if share*spread <= 4.0/3+1e-9 {
		return nil, nil
	}
	return []string{fmt.Sprintf("share %v of mixing %s on graph %s averages with the eigenvalue %.4g: below -1/3 "+
		"differences between agents may grow, and the more so the smaller alpha is; share %.3g is safe", share,
		r.Text("mixing"), r.Text("graph"), 1-float64(share*spread), 1/spread)}, nil
}

const scaffnewH = 0 // in State.Aux

func (Scaffnew) Name() string { return "scaffnew" }

func (a Scaffnew) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"h"}, Tracked: Tracked{"h", a.limit}},
		Exchange:   Exchange{Edges: CoinGraph, Mixing: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: AnyPlacement},
		Membership: Membership{Regroup: restart(scaffnewH)},
		About: About{"the model, when the coin says so", "2·v·d·|E_t|", "1", exactOnSkew,
			"any graph, all edges or none", "Mishchenko, Malinovsky, Stich and Richtárik 2022"},
	}
}

// limit is the multiple of ∇F - ∇f_i to which h tends: -1/(1-mu), or -1 inside the momentum.
func (a Scaffnew) limit(_, _ float64) float64 { return -1 / a.inverseGain() }

func (a Scaffnew) Local(s *State, r *Round) error {
	if err := a.Step(s, r, r.Alpha, s.X, device.Term{A: -r.Alpha, V: s.Aux[scaffnewH]}); err != nil {
		return err
	}
	s.Send(r, s.X)
	return nil
}

func (a Scaffnew) Mix(s *State, r *Round) error {
	gain := 0.0
	if r.Alpha > 0 {
		gain = a.P * a.C / r.Alpha
	}
	s.AddDifferences(r, 0, FixedWeight, device.Term{A: -a.C, V: s.X}, device.Term{A: -gain, V: s.Aux[scaffnewH]})
	return nil
}
