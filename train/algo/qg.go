package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

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
// In rounds of H > 1 local steps mh stays within a round. At its end, with x⁰ the model at its
// start, mh ← mu·mh + (1-mu)·(x⁰ - x')/(alpha·H).
//
// Two agents that averaged once go on approaching each other while mh decays. Where few edges of
// many agents are active together they pass their mean, and differences between agents grow.
// Differences also grow with a momentum near 0.4 if W_t stays the same and has eigenvalues below
// -3/4.
//
// It has the bias of DSGD if agents hold different data, whatever mu. The mean model has no
// recursion of its own, since mh contains past averaging.
type QG struct {
	Mu       float64
	Nesterov bool
	H        int // local steps of a round; 0 is 1
}

var qgDSGDm = Method{Name: "qg-dsgdm", Keys: []setting.Key{LocalSteps}, New: newQG, Check: qgStable}

func newQG(s Settings) Algorithm {
	return QG{Mu: s.Momentum, Nesterov: s.Nesterov, H: s.Whole("local_steps")}
}

// qgStable refuses a momentum at which differences between agents grow.
func qgStable(r Run) ([]string, error) {
	s, rule := r.Settings(), MomentumRule(quasiGlobal{})
	if s.Nesterov {
		rule = quasiGlobalNesterov{}
	}
	return nil, r.CheckMomentum("momentum", GossipMomentum{MomentumRule: rule, Mu: s.Momentum,
		Steps: max(1, s.Whole("local_steps"))})
}

// quasiGlobal is the rule of m = mh times the number of steps.
type quasiGlobal struct{}

func (quasiGlobal) Ahead(mu float64) float64 { return mu }

func (quasiGlobal) Move(mu, x, m, pull float64) (newX, newM float64) {
	moved := float64(mu*m) + pull
	return x - moved, float64(mu*m) + float64((1-mu)*moved)
}

// quasiGlobalNesterov is its form with Nesterov's momentum.
type quasiGlobalNesterov struct{}

func (quasiGlobalNesterov) Ahead(mu float64) float64 { return mu * mu }

func (quasiGlobalNesterov) Move(mu, x, m, pull float64) (newX, newM float64) {
	moved := float64(mu*mu*m) + pull
	return x - moved, float64(mu*m) + float64((1-mu)*moved)
}

const (
	qgMomentum = iota // in State.Aux: mh
	qgStart           // x⁰, in rounds of several steps
)

func (QG) Name() string { return "qg-dsgdm" }

func (a QG) Traits() Traits {
	t := Traits{
		Memory:     Memory{Aux: []string{"momentum"}},
		Exchange:   Exchange{Edges: AnyRounds},
		Rounds:     Rounds{Period: a.H},
		Updates:    Updates{Optimizers: AnyMomentum},
		Membership: Membership{Regroup: keepVectors},
		About: About{"the model", "2·v·d·|E_t|", "1, or 2 with local steps", "bias of dsgd, whatever mu",
			"any graph; momentum below about 0.5 where few edges of many agents are active together",
			"Lin, Karimireddy, Stich and Jaggi 2021, algorithm 1"},
	}
	if a.H > 1 {
		t.Aux = append(t.Aux, "start")
	}
	return t
}

func (a QG) Local(s *State, r *Round) error {
	if a.H > 1 && r.T%a.H == 0 {
		s.copy(s.Aux[qgStart], s.X)
	}
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	mh, newest, past := s.Aux[qgMomentum], 1.0, a.Mu
	if a.Nesterov {
		newest, past = 1+a.Mu, a.Mu*a.Mu
	}
	s.plan(s.g, device.Term{A: newest, V: s.g}, device.Term{A: past, V: mh}) // u
	s.plan(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: s.g})
	if r.Alpha > 0 && a.H <= 1 {
		s.plan(mh, device.Term{A: a.Mu, V: mh}, device.Term{A: 1 - a.Mu, V: s.g})
	}
	s.flush()
	s.Send(r, s.X)
	return nil
}

func (a QG) Mix(s *State, r *Round) error {
	if a.H > 1 {
		a.endRound(s, r)
		return nil
	}
	gain := 0.0
	if r.Alpha > 0 {
		gain = (1 - a.Mu) / r.Alpha
	}
	s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: s.X}, device.Term{A: gain, V: s.Aux[qgMomentum]})
	return nil
}

// endRound averages and updates mh in the last iteration of a round.
func (a QG) endRound(s *State, r *Round) {
	if (r.T+1)%a.H != 0 {
		return
	}
	s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: s.X})
	if r.Alpha > 0 {
		mh, moved := s.Aux[qgMomentum], (1-a.Mu)/(r.Alpha*float64(a.H))
		s.combine(mh, device.Term{A: a.Mu, V: mh}, device.Term{A: moved, V: s.Aux[qgStart]},
			device.Term{A: -moved, V: s.X})
	}
}
