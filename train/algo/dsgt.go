package algo

import "fspda/device"

// DSGT is gradient tracking in the form adapt-then-combine (Xu, Zhu, Soh and Xie 2015). With W_t
// the Metropolis weights of the active graph and y = g at the start,
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

func (DSGT) Name() string { return "dsgt" }

func (a DSGT) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"z"}, Tracked: Tracked{"z", a.trackedLimit},
			Work: 1}, // g while y is made: the gradient, or its direction
		Exchange: Exchange{Edges: AnyEdges, Vectors: 2, // z + g, then x - alpha·y
			Between: []Stage{a.adapt}},
		Updates: Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: AnyPlacement,
			Takes: TrackedGradient},
		Membership: Membership{Regroup: restart(trackQ)},
		About: About{"model and tracker; form atc one after the other", "4·v·d·|E_t|", "1; form atc 2", exactOnSkew,
			anyGraph, "Pu and Nedić 2021; form atc Xu, Zhu, Soh and Xie 2015"},
	}
}

func (a DSGT) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	u := s.g
	if !a.Corrected {
		u = a.direct(s, r.Alpha, s.X)
	}
	g, z := s.Work[0], s.Aux[trackQ]
	s.copy(g, u)
	s.combine(z, device.Term{A: 1, V: z}, device.Term{A: 1, V: g})
	if len(r.Links) > 0 {
		s.post(r, s.copied(r, z))
	}
	return nil
}

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
	s.combine(y, device.Term{A: 1, V: y}, device.Term{A: -1, V: s.Work[0]})
	return nil
}

func (a DSGT) Mix(s *State, r *Round) error {
	s.AddDifferences(r, 1, ActiveWeight, device.Term{A: -1, V: s.X})
	return nil
}
