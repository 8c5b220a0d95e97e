package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// DSGD is decentralized SGD on a time-varying graph. With D = own - other over each active edge at
// time t,
//
//	x ← x - theta·ΣD - alpha·u       (combine-then-adapt: the gradient is taken before mixing)
//
// that is, W_t = I - theta·L_t. It requires theta·(active edges at a node) < 1. It is biased if
// agents hold different data: the consensus error and the offset of the mean are proportional to
// alpha.
//
// Options: Metropolis weights of the active graph instead of the constant theta; ATC
// (adapt-then-combine), x ← W_t(x - alpha·u), which sends after the step.
type DSGD struct {
	Theta      float64 // consensus step; unused with Metropolis
	Metropolis bool
	ATC        bool
	Descent
}

// The keys of this method.
var (
	weights = setting.Key{Name: "weights", Topic: "method", Default: setting.Auto,
		Choices: []string{setting.Auto, "constant", "metropolis", "process"},
		Help: "dsgd: constant (theta), metropolis (of the active graph), process (those of the edge process, such " +
			"as base(2)), or auto (process where it has weights, else constant)"}
	order = setting.Key{Name: "order", Topic: "method", Default: "cta", Choices: []string{"cta", "atc"},
		Help: "dsgd: cta (combine then adapt) or atc (adapt then combine)"}
)

var dsgd = Method{Name: "dsgd", Keys: []setting.Key{Theta, weights, order}, Check: dsgdStable,
	New: func(s Settings) Algorithm {
		return DSGD{Theta: s.Param("theta"), Metropolis: s.Choice("weights") != "constant",
			ATC: s.Choice("order") == "atc", Descent: s.Descent}
	}}

// dsgdStable checks theta. Other weights are doubly stochastic by construction.
func dsgdStable(r Run) ([]string, error) {
	if s := r.Settings(); s.Choice("weights") == "constant" {
		return r.CheckGain("theta", s.Param("theta"), 0)
	}
	return nil, nil
}

func (DSGD) Name() string { return "dsgd" }

func (a DSGD) Traits() Traits {
	return Traits{
		Exchange:   Exchange{Edges: AnyEdges, Masks: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: keepVectors},
		About: About{"k values of the model", "2·v·k·|E_t|", "0", biasedOnSkew, anyGraph,
			"Lian and others 2017; Koloskova and others 2020"},
	}
}

func (a DSGD) Local(s *State, r *Round) error {
	x := s.X
	if !a.ATC {
		x = s.SendModel(r)
	}
	if err := a.Step(s, r, r.Alpha, x); err != nil {
		return err
	}
	if a.ATC {
		s.Send(r, s.X)
	}
	return nil
}

func (a DSGD) Mix(s *State, r *Round) error {
	if a.Metropolis {
		s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: s.X})
	} else {
		s.AddDifferences(r, 0, UnitWeight, device.Term{A: -a.Theta, V: s.X})
	}
	return nil
}
