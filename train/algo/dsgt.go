package algo

import "fspda/device"

// DSGT is gradient tracking in the form adapt-then-combine (Xu, Zhu, Soh and Xie 2015). With W_t the
// Metropolis weights of the active graph and y = g at the start,
//
//	x^{t+1} = W_t (x^t - alpha·y^t)        y^{t+1} = W_{t+1} (y^t + g^{t+1} - g^t)
//
// The agent stores z = y - g. An iteration has two exchanges, since x needs the y of the first:
//
//	y = W_t (z + g), at t = 0 y = g        x ← W_t (x - alpha·y)        z ← y - g
//
// [DIGing] combines before it adapts, and [NEXT] mixes x as this does and y as that: one exchange.
// Optimizers enter as in DIGing. Invariant: Σ z = 0; the mean model moves by -alpha·mean(g). With
// exact gradients the agents reach the optimum, and z tends to ∇F - ∇f_i.
type DSGT struct{ Descent }

var (
	_ Tracker     = DSGT{}
	_ Staged      = DSGT{}
	_ MultiVector = DSGT{}
)

func (DSGT) Name() string { return "dsgt" }

func (DSGT) Aux() []string { return []string{"z"} }

// Vectors is two: z + g, and x - alpha·y in the second exchange.
func (DSGT) Vectors() int { return 2 }

// Tracked is z, as q of DIGing.
func (a DSGT) Tracked(alpha, eta float64) (string, float64) { return "z", 1 / a.inverseGain() }

// NewScratch returns the vector of g while y is made: the gradient, or its direction.
func (DSGT) NewScratch(newVector func() device.Vector) any { return newVector() }

func (a DSGT) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	u := s.g
	if !a.Corrected {
		u = a.direct(s, r.Alpha, s.X)
	}
	g, z := s.Scratch.(device.Vector), s.Aux[trackQ]
	s.copy(g, u)
	s.combine(z, device.Term{A: 1, V: z}, device.Term{A: 1, V: g})
	if len(r.Links) > 0 {
		s.post(r, s.copied(r, z))
	}
	return nil
}

// Between is the second exchange, of the models.
func (a DSGT) Between() []Stage { return []Stage{a.adapt} }

func (a DSGT) adapt(s *State, r *Round) error {
	y := s.Aux[trackQ]
	if r.T > 0 { // y^0 is g^0, as stated, though it travels as in every iteration
		s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: y})
	}
	u := y
	if a.Corrected {
		s.copy(s.g, y)
		u = a.direct(s, r.Alpha, s.X)
	}
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u})
	if len(r.Links) > 0 {
		s.post(r, s.copied(r, s.X))
	}
	s.combine(y, device.Term{A: 1, V: y}, device.Term{A: -1, V: s.Scratch.(device.Vector)})
	return nil
}

func (a DSGT) Mix(s *State, r *Round) error {
	s.AddDifferences(r, 1, ActiveWeight, device.Term{A: -1, V: s.X})
	return nil
}
