package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// SA is FSPDA-SA, the paper's main algorithm (equation 8): stochastic gradient descent-ascent on
// the augmented Lagrangian of consensus optimization (equation 4), over random edges and random
// coordinates. With D = own - other on the mask of each active edge, at time t,
//
//	x ← x - alpha·u - eta·lambda - gamma·ΣD      (8a)
//	lambda ← lambda + beta·ΣD                    (8b)
//
// where u = Opt(g) is the direction of the optimizer, or with a Corrected descent u = Opt(g +
// (eta/alpha)·lambda) and no other term of lambda in 8a: an adaptive optimizer then still ends at a
// stationary point of F. All right-hand sides are at time t. lambda is block i of Aᵀ·(edge
// duals), so no edge variable is stored.
//
// Departures: equation 8b prints other - own, which diverges; this is the sign of the paper's
// equation 11 and of its appendix. The paper has no optimizer but SGD; its released program has
// momentum.
//
// For every graph, mask, gamma, beta and eta the mean model moves by -alpha·mean(u). Invariant: Σ
// lambda = 0, since both ends of an edge add exact negatives.
//
// Stale reproduces the released program, whose dual step uses own at t+1 and other at t. Σ lambda
// is then not zero: it accumulates the motion of the mean and pulls it towards x^0, like a term
// (c/2)·|x - x^0|² in the objective with c = 2·eta·beta·(k/d)/(n·alpha), for one edge at a time. It
// serves to reproduce published curves.
type SA struct {
	Gamma float64 // gossip step size; 0.5 averages a pair
	Beta  float64 // dual step size
	Stale bool    // the dual compares own at t+1 with other at t
	Descent
}

var dualForm = setting.Key{Name: "dual", Topic: "method", Default: "same-time",
	Choices: []string{"same-time", "stale-neighbour"},
	Help:    "fspda-sa: same-time, or stale-neighbour, the released program's dual step"}

var fspdaSA = Method{Name: "fspda-sa", Keys: []setting.Key{Gamma, Beta, dualForm}, Check: checkGossipGain,
	New: func(s Settings) Algorithm {
		return SA{Gamma: s.Param("gamma"), Beta: s.Param("beta"), Stale: s.Choice("dual") == "stale-neighbour",
			Descent: s.Descent}
	}}

const saLambda = 0 // in State.Aux

func (SA) Name() string { return "fspda-sa" }

func (a SA) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"lambda"}, Transient: true, Tracked: Tracked{"lambda", a.limit}},
		Exchange:   Exchange{Edges: AnyEdges, Masks: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: AnyPlacement},
		Needs:      Needs{Dual: true},
		Membership: Membership{Regroup: recentre(saLambda)},
		About: About{"k values of the model", "2·v·k·|E_t|", "1 (dual)", exactOnSkew, anyGraph,
			"FSPDA, equation 8"},
	}
}

// limit is the multiple of ∇F - ∇f_i to which lambda tends: alpha/eta, times 1/(1-mu) with momentum
// outside of it.
func (a SA) limit(alpha, eta float64) float64 { return alpha / (a.inverseGain() * eta) }

func (a SA) Local(s *State, r *Round) error {
	x := s.SendModel(r) // before the gradient, so that communication overlaps with it
	return a.Step(s, r, r.Alpha, x, device.Term{A: r.Eta, V: s.Aux[saLambda]})
}

func (a SA) Mix(s *State, r *Round) error {
	if a.Stale {
		a.mixStale(s, r)
		return nil
	}
	s.AddDifferences(r, 0, UnitWeight, device.Term{A: -a.Gamma, V: s.X}, device.Term{A: a.Beta, V: s.Aux[saLambda]})
	return nil
}

// mixStale updates x first, and then the dual with the new x.
func (a SA) mixStale(s *State, r *Round) {
	s.AddDifferences(r, 0, UnitWeight, device.Term{A: -a.Gamma, V: s.X})
	to := s.targets(device.Term{A: a.Beta, V: s.Aux[saLambda]})
	for _, l := range r.Links {
		if l.Received != nil {
			next := r.Acquire(l.Len)
			s.do(device.Gather(next, s.X, l.Mask))
			s.do(device.AddDiff(next, l.Received[0], l.Mask, to...))
		}
	}
}
