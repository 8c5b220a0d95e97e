package algo

import "fspda/device"

// SA is FSPDA-SA: stochastic gradient descent-ascent on the augmented Lagrangian of consensus optimization, over random edges and
// random coordinates (the paper's main algorithm). With D = own - other on the mask of each active edge, at time t,
//
//	x ← x - alpha·u - eta·lambda - gamma·ΣD
//	lambda ← lambda + beta·ΣD
//
// where u is the gradient, or its heavy ball u ← mu·u + g. All right-hand sides are those of time t. lambda is block i of
// Aᵀ·(edge duals): no edge variable is stored.
//
// Departures from the paper's text: its box prints other - own in the dual step, which diverges; this is the sign of the paper's
// own two-step form and appendix. The paper has no heavy ball; its released program does.
//
// For every graph, mask, gamma, beta and eta the mean model moves by -alpha·mean(u), and Σ lambda stays zero: both ends of an edge
// add exact negatives.
type SA struct {
	Gamma float64 // gossip gain; 0.5 averages a pair
	Beta  float64 // dual step
	Mu    float64 // heavy ball; 0 is off
}

var _ Algorithm = SA{}

const (
	saLambda   = iota // in State.Aux
	saMomentum        // only if Mu != 0
)

func (SA) Name() string { return "fspda-sa" }

func (a SA) Aux() []string {
	if a.Mu == 0 {
		return []string{"lambda"}
	}
	return []string{"lambda", "momentum"}
}

func (a SA) Local(s *State, r *Round) error {
	gatherAndPost(s, r, s.X) // before the gradient, so that the values travel while it computes
	u, err := direction(s, r, a.Mu, saMomentum)
	if err != nil {
		return err
	}
	s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u}, device.Term{A: -r.Eta, V: s.Aux[saLambda]})
	s.Dev.Combine(s.X, s.terms...)
	return nil
}

func (a SA) Mix(s *State, r *Round) error {
	s.to = append(s.to[:0], device.Term{A: -a.Gamma, V: s.X}, device.Term{A: a.Beta, V: s.Aux[saLambda]})
	for _, l := range r.Links {
		if l.Heard != nil {
			s.Dev.AddDiff(l.Own[0], l.Heard[0], l.Mask, s.to...)
		}
	}
	return nil
}
