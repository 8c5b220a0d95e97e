package algo

import "fspda/device"

// DIGing is gradient tracking on time-varying graphs (Nedić, Olshevsky and Shi 2017). With W_t the
// Metropolis weights of the active graph and y = g at the start,
//
//	x^{t+1} = W_t x^t - alpha·y^t
//	y^{t+1} = W_t y^t + g^{t+1} - g^t
//
// The agent stores q^t = y^t - g^t, the tracker without its newest gradient, so each iteration
// needs only its own gradient:
//
//	y = q + g        x ← x - alpha·y - Σ w·(x own - x other)        q ← q - Σ w·(y own - y other)
//
// An agent without an edge leaves q unchanged. A Corrected descent puts the optimizer behind the
// tracker: Opt(y) replaces y in the step of x, and with momentum that is GT-DSGDm. Otherwise the
// tracker follows the directions, g = Opt(gradient) above, and with momentum that is Momentum
// Tracking (Takezawa and others 2022).
//
// Invariant: Σ q = 0, so the mean of y equals the mean of g, and the mean model moves by
// -alpha·mean(g). With exact gradients the agents reach the optimum, and q tends to ∇F - ∇f_i.
type DIGing struct{ Descent }

var diging = Method{Name: "diging", New: func(s Settings) Algorithm { return DIGing{Descent: s.Descent} }}

const trackQ = 0 // in State.Aux, of DIGing and NEXT

func (DIGing) Name() string { return "diging" }

func (a DIGing) Traits() Traits {
	return Traits{
		Memory:   Memory{Aux: []string{"q"}, Tracked: Tracked{"q", a.trackedLimit}},
		Exchange: Exchange{Edges: AnyEdges, Vectors: 2}, // x and y
		Updates: Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: AnyPlacement,
			Takes: TrackedGradient},
		Membership: Membership{Regroup: restart(trackQ)},
		About: About{"model and tracker", "4·v·d·|E_t|", "1", exactOnSkew, anyGraph,
			"Nedić, Olshevsky and Shi 2017"},
	}
}

// trackedLimit is the multiple of ∇F - ∇f_i to which a tracker without its newest gradient tends:
// 1, times 1/(1-mu) where it follows momenta.
func (d Descent) trackedLimit(_, _ float64) float64 { return 1 / d.inverseGain() }

func (a DIGing) Local(s *State, r *Round) error {
	if len(r.Links) == 0 { // no neighbour needs y: one pass
		return a.Step(s, r, r.Alpha, s.X, device.Term{A: r.Alpha, V: s.Aux[trackQ]})
	}
	u, y, err := a.track(s, r)
	if err != nil {
		return err
	}
	s.post(r, s.copied(r, s.X), y)
	if !a.Corrected {
		u = y
	}
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u})
	return nil
}

// track returns the tracker y = g + q in a pooled vector, and the direction u: that of the
// gradient, which then is the g of y, or with a Corrected descent that of y.
func (d Descent) track(s *State, r *Round) (u, y device.Vector, err error) {
	if err := r.Grad(s.g, s.X); err != nil {
		return nil, nil, err
	}
	u = s.g
	if !d.Corrected {
		u = d.direct(s, r.Alpha, s.X)
	}
	q := device.Term{A: 1, V: s.Aux[trackQ]}
	y = r.Acquire(u.Len())
	s.combine(y, device.Term{A: 1, V: u}, q)
	if d.Corrected {
		u = d.direct(s, 1, s.X, q)
	}
	return u, y, nil
}

// copied returns a pooled copy of v.
func (s *State) copied(r *Round, v device.Vector) device.Vector {
	c := r.Acquire(v.Len())
	s.copy(c, v)
	return c
}

// post posts pooled vectors over every link on which this end sends.
func (s *State) post(r *Round, vs ...device.Vector) {
	for i := range r.Links {
		if !r.Links[i].Mute {
			r.Post(i, vs...)
		}
	}
}

func (a DIGing) Mix(s *State, r *Round) error {
	mixTracked(s, r)
	return nil
}

// mixTracked averages the posted x and y with the Metropolis weights of the active graph.
func mixTracked(s *State, r *Round) {
	s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: s.X})
	s.AddDifferences(r, 1, ActiveWeight, device.Term{A: -1, V: s.Aux[trackQ]})
}
