package algo

import "fspda/device"

// SA is FSPDA-SA, the paper's main algorithm (equation 8): stochastic gradient descent-ascent on
// the augmented Lagrangian of consensus optimization (equation 4), over random edges and random
// coordinates. With D = own - other on the mask of each active edge, at time t,
//
//	x ← x - alpha·u - eta·lambda - gamma·ΣD      (8a)
//	lambda ← lambda + beta·ΣD                    (8b)
//
// where u is the gradient, or its heavy-ball momentum u ← mu·u + g. All right-hand sides are those
// of time t. lambda is block i of Aᵀ·(edge duals), so no edge variable is stored.
//
// Departures: equation 8b prints other - own, which diverges; this is the sign of the paper's
// equation 11 and of its appendix. The paper has no momentum; its released program does.
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
	Mu    float64 // momentum; 0 disables it
	Stale bool    // the dual compares own at t+1 with other at t
}

var _ Tracker = SA{}

const (
	saLambda   = iota // in State.Aux
	saMomentum        // only if Mu != 0
)

func (SA) Name() string { return "fspda-sa" }

func (a SA) Aux() []string { return withMomentum(a.Mu, "lambda") }

// Tracked is lambda, which tends to (alpha/((1-mu)·eta))·(∇F - ∇f_i).
func (a SA) Tracked(alpha, eta float64) (string, float64) {
	return "lambda", alpha / ((1 - a.Mu) * eta)
}

func (a SA) Local(s *State, r *Round) error {
	x := s.SendModel(r) // before the gradient, so that communication overlaps with it
	u, err := direction(s, r, x, a.Mu, saMomentum)
	if err != nil {
		return err
	}
	s.combine(s.X, device.Term{A: 1, V: x}, device.Term{A: -r.Alpha, V: u}, device.Term{A: -r.Eta, V: s.Aux[saLambda]})
	return nil
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
			s.Dev.Gather(next, s.X, l.Mask)
			s.Dev.AddDiff(next, l.Received[0], l.Mask, to...)
		}
	}
}
