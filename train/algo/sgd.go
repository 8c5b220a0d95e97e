package algo

import "fspda/device"

// SGD is central training, the reference: all agents hold the same model and the same vectors of
// the optimizer, and take one step along the mean of their gradients, as one agent with all batches
// would,
//
//	g = (1/n)·Σ g_i        x ← x - alpha·Opt(clip(g))
//
// Every agent sends its gradient to all others and sums in the order of the agents, so all copies
// of x stay bit-identical.
type SGD struct{ Descent }

var sgd = Method{Name: "sgd", New: func(s Settings) Algorithm { return SGD{Descent: s.Descent} }}

func (SGD) Name() string { return "sgd" }

func (a SGD) Traits() Traits {
	return Traits{
		Memory:   Memory{Scalars: a.numbers()},
		Exchange: Exchange{Edges: AllReduce, Reduce: a.reduce},
		Updates: Updates{Descent: a.Descent, Optimizers: append([]string{Any}, scheduleFree...), Takes: MeanGradient,
			ClipsMean: true},
		Membership: Membership{Regroup: keepVectors},
		About: About{"the gradient, an all-reduce", "2·(n-1)·v·d", "0", exactOnSkew, "none",
			"the central reference"},
	}
}

func (a SGD) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	s.sendAll(r, s.g)
	return nil
}

func (a SGD) reduce(s *State, r *Round) error {
	_, err := s.sumAll(a.Name(), r, 0, nil)
	return err
}

func (a SGD) Mix(s *State, r *Round) error {
	sum, err := s.sumAll(a.Name(), r, 0, s.g) // the gradient was posted and is no longer needed
	if err != nil {
		return err
	}
	share := 1 / float64(len(r.Links)+1)
	if _, plain := a.Optimizer().(Plain); plain && a.Decay == nil && r.Clip == nil { // no vector for the mean
		s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha / float64(len(r.Links)+1), V: sum})
		return nil
	}
	if len(r.Links) > 0 {
		s.combine(s.g, device.Term{A: share, V: sum})
	}
	if r.Clip != nil {
		r.Clip(s.g, s.X)
	}
	u := a.direct(s, r.Alpha, s.X)
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u})
	return nil
}
