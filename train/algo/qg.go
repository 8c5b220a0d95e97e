package algo

import "fspda/device"

// QG is DSGD with quasi-global momentum (Lin, Karimireddy, Stich and Jaggi 2021, algorithm 1): the
// momentum follows the motion of the averaged model, so that it points the same way at agents of
// different data. With W_t the Metropolis weights of the active graph,
//
//	m = mu·mh + g        u = m, or g + mu·m with Nesterov
//	x' = W_t (x - alpha·u)
//	mh ← mu·mh + (1-mu)·(x - x')/alpha        x ← x'
//
// With D = own - other of x - alpha·u, x - x' = alpha·u + Σ w·D, so mh needs no copy of x. At alpha
// = 0 mh stays.
//
// It has the bias of DSGD if agents hold different data, whatever mu. The mean model has no
// recursion of its own, since mh contains past averaging.
type QG struct {
	Mu       float64
	Nesterov bool
}

var _ Algorithm = QG{}

const qgMomentum = 0 // in State.Aux: mh

func (QG) Name() string { return "qg-dsgdm" }

func (QG) Aux() []string { return []string{"momentum"} }

func (a QG) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	mh, newest, past := s.Aux[qgMomentum], 1.0, a.Mu
	if a.Nesterov {
		newest, past = 1+a.Mu, a.Mu*a.Mu
	}
	s.plan(s.g, device.Term{A: newest, V: s.g}, device.Term{A: past, V: mh}) // u
	s.plan(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: s.g})
	if r.Alpha > 0 {
		s.plan(mh, device.Term{A: a.Mu, V: mh}, device.Term{A: 1 - a.Mu, V: s.g})
	}
	s.flush()
	s.Send(r, s.X)
	return nil
}

func (a QG) Mix(s *State, r *Round) error {
	gain := 0.0
	if r.Alpha > 0 {
		gain = (1 - a.Mu) / r.Alpha
	}
	s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: s.X}, device.Term{A: gain, V: s.Aux[qgMomentum]})
	return nil
}
