package algo

import "fspda/device"

// DmSGD is decentralized momentum SGD (Yu, Jin and Yang 2019), which averages the momenta as well.
// With W_t the Metropolis weights of the active graph,
//
//	m ← mu·m + g        x ← W_t (x - alpha·m)        m ← W_t m
//
// The mean model moves by -alpha times the heavy ball of the mean gradient. It is biased if agents
// hold different data, little more than DSGD without momentum, since the momenta are averaged.
type DmSGD struct{ Mu float64 }

var dmsgd = Method{Name: "dmsgd", New: func(s Settings) Algorithm { return DmSGD{Mu: s.Momentum} }}

const dmMomentum = 0 // in State.Aux: m

func (DmSGD) Name() string { return "dmsgd" }

func (DmSGD) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"momentum"}},
		Exchange:   Exchange{Edges: AnyEdges, Vectors: 2}, // x and m
		Updates:    Updates{Optimizers: HeavyBallOnly},
		Membership: Membership{Regroup: keepVectors},
		About:      About{"model and momentum", "4·v·d·|E_t|", "1", biasedOnSkew, anyGraph, "Yu, Jin and Yang 2019"},
	}
}

func (a DmSGD) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	m := s.Aux[dmMomentum]
	s.plan(m, device.Term{A: a.Mu, V: m}, device.Term{A: 1, V: s.g})
	s.plan(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: m})
	s.flush()
	s.Send(r, s.X, m)
	return nil
}

func (DmSGD) Mix(s *State, r *Round) error {
	s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: s.X})
	s.AddDifferences(r, 1, ActiveWeight, device.Term{A: -1, V: s.Aux[dmMomentum]})
	return nil
}
