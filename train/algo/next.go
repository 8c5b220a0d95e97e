package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// NEXT is in-network successive convex approximation (Di Lorenzo and Scutari 2016) with its linear
// surrogate, proximal weight tau and no constraint: gradient tracking, adapt-then-combine. With W_t
// the Metropolis weights of the active graph and y = g at the start,
//
//	z = x^t - nu_t·y^t        x^{t+1} = W_t z        y^{t+1} = W_t y^t + g^{t+1} - g^t
//
// where nu_t = a_t·n/tau and a_{t+1} = a_t·(1 - kappa·a_t). Here nu_0 is alpha, and nu_t =
// alpha_t·b_t with b_0 = 1 and b_{t+1} = b_t·(1 - Kappa·b_t), so Kappa is kappa·a_0. As in
// [DIGing], the agent stores q = y - g, and optimizers enter as there. Invariant: Σ q = 0; q tends
// to ∇F - ∇f_i with exact gradients. The mean model moves by -nu·mean(g).
type NEXT struct {
	Kappa float64 // in [0,1); 0 keeps the step constant
	Descent
}

var kappa = setting.Key{Name: "kappa", Topic: "method", Range: "[0, 1)", Want: "at least 0 and below 1",
	Help: "next: the step size decays as b(t+1) = b(t) (1 - kappa b(t)); 0 keeps it constant"}

var next = Method{Name: "next", Keys: []setting.Key{kappa},
	New: func(s Settings) Algorithm { return NEXT{Kappa: s.Param("kappa"), Descent: s.Descent} }}

func (NEXT) Name() string { return "next" }

func (a NEXT) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"q"}, Tracked: Tracked{"q", a.trackedLimit},
			NewScratch: func() any { return &stepDecay{} }},
		Exchange: Exchange{Edges: AnyEdges, Vectors: 2}, // z and y
		Updates: Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Placements: AnyPlacement,
			Takes: TrackedGradient},
		Needs:      Needs{Exact: true},
		Membership: Membership{Regroup: restart(trackQ)},
		About: About{"model and tracker", "4·v·d·|E_t|", "1", exactOnSkew, anyGraph,
			"Di Lorenzo and Scutari 2016"},
	}
}

func (a NEXT) Local(s *State, r *Round) error {
	nu := r.Alpha * s.Scratch.(*stepDecay).at(r.T, a.Kappa)
	if len(r.Links) == 0 {
		return a.Step(s, r, nu, s.X, device.Term{A: nu, V: s.Aux[trackQ]})
	}
	u, y, err := a.track(s, r)
	if err != nil {
		return err
	}
	s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X}, device.Term{A: -nu, V: u})
	if !a.Corrected {
		s.terms = append(s.terms, device.Term{A: -nu, V: s.Aux[trackQ]})
	}
	s.do(device.Combine(s.X, s.terms...))
	s.post(r, s.copied(r, s.X), y)
	return nil
}

func (a NEXT) Mix(s *State, r *Round) error {
	mixTracked(s, r)
	return nil
}

// stepDecay caches b_t at one t. It is a function of t alone: for another t than the next one it is
// recomputed from 0.
type stepDecay struct {
	t int
	b float64
}

func (f *stepDecay) at(t int, kappa float64) float64 {
	if f.b == 0 || t < f.t {
		*f = stepDecay{b: 1}
	}
	for ; f.t < t; f.t++ {
		f.b *= 1 - float64(kappa*f.b)
	}
	return f.b
}
