package algo

import "fspda/device"

// DecentLaM is decentralized SGD whose momentum contains the averaging (Yuan and others 2021,
// algorithm 2), so that momentum does not enlarge the bias of DSGD. With W_t the Metropolis weights
// of the active graph,
//
//	y = x - alpha·g        gt = (x - W_t y)/alpha
//	m ← mu·m + gt          x ← x - alpha·m
//
// With D = own - other of y, gt = g + Σ w·D/alpha. At alpha = 0 nothing happens.
//
// The mean model moves by -alpha times the heavy ball of the mean gradient. Its fixed point is that
// of DSGD without momentum.
type DecentLaM struct{ Mu float64 }

var decentLaM = Method{Name: "decentlam", Check: decentLaMStable,
	New: func(s Settings) Algorithm { return DecentLaM{Mu: s.Momentum} }}

// decentLaMStable refuses a momentum at which differences between agents grow.
func decentLaMStable(r Run) ([]string, error) {
	return nil, r.CheckMomentum("momentum", GossipMomentum{MomentumRule: SumOfPulls{}, Mu: r.Settings().Momentum,
		Steps: 1})
}

const lamMomentum = 0 // in State.Aux: m

func (DecentLaM) Name() string { return "decentlam" }

func (DecentLaM) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"momentum"}},
		Exchange:   Exchange{Edges: ManyEdges},
		Updates:    Updates{Optimizers: HeavyBallOnly},
		Membership: Membership{Regroup: keepVectors},
		About: About{"the model", "2·v·d·|E_t|", "1", "bias of dsgd, whatever mu",
			"any graph; momentum below about 0.5 where few edges are active together",
			"Yuan and others 2021, algorithm 2"},
	}
}

func (a DecentLaM) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil || r.Alpha == 0 {
		return err
	}
	m := s.Aux[lamMomentum]
	s.combine(m, device.Term{A: a.Mu, V: m}, device.Term{A: 1, V: s.g})
	if len(r.Links) > 0 {
		y := r.Acquire(s.X.Len())
		s.combine(y, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: s.g})
		s.post(r, y)
	}
	return nil
}

func (a DecentLaM) Mix(s *State, r *Round) error {
	if r.Alpha == 0 {
		return nil
	}
	m := s.Aux[lamMomentum]
	s.AddDifferences(r, 0, ActiveWeight, device.Term{A: 1 / r.Alpha, V: m})
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: m})
	return nil
}
