package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// DeMo is decoupled momentum (Peng, Quesnelle and Kingma 2024): agents send the largest
// coefficients of the cosine transform C of their momentum e, and keep the rest for later. With g
// the gradient at x,
//
//	x ← (1 - alpha·decay)·x        e ← Keep·e + alpha·g
//	S, c = the largest coefficients of C e, of each chunk        e ← e - C^T c
//	r = for each coefficient the mean over the agents that sent it        x ← x - alpha·sign(C^T r)
//
// Every message reaches all agents, which sum in the order of their numbers: all models stay equal
// to the bit. The step does not depend on the size of the gradient. The mean is over the agents
// that sent a coefficient and not over all, which matters for the signs after the transform.
type DeMo struct {
	Keep  float64 // decay rate of the momentum
	Decay *Decay  // decoupled weight decay; nil: none
}

// demoKind is the optimizer of demo, which DeMo computes itself.
var demoKind = OptimizerKind{Name: "demo",
	Rule: "u is the sign of a momentum whose largest coefficients were averaged", UnitSteps: true, Decoupled: true}

var demo = Method{Name: "demo", Keys: []setting.Key{compress}, Params: []setting.Key{{Name: "keep", Default: 0.999,
	Range: "[0, 1)", Help: "decay rate of the momentum"}}, New: func(s Settings) Algorithm {
	return DeMo{Keep: s.Param("keep"), Decay: s.Descent.Decay}
}}

// momenta is the working memory of an agent.
type momenta struct {
	own  device.SparseTerm // the coefficients that the agent sends
	ones device.Vector     // a vector of as many ones
}

func (DeMo) Name() string { return "demo" }

func (a DeMo) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"momentum"}, NewScratch: func() any { return &momenta{} },
			ScratchVectors: 2}, // coefficients and counts
		Exchange:   Exchange{Edges: AllGather, Code: CoefficientCode},
		Updates:    Updates{Descent: Descent{Decay: a.Decay}, Optimizers: []string{"demo"}},
		Membership: Membership{Regroup: keepVectors},
		About: About{"k cosine coefficients of each chunk of the momentum, to all agents",
			"n·(n-1)·k·(v + iota) a chunk", "1", "bias: steps are signs", "none", "Peng, Quesnelle and Kingma 2024"},
	}
}

func (a DeMo) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	if a.Decay != nil {
		s.shrink(r, s.X, r.Alpha*a.Decay.Rate)
	}
	e := s.Aux[0]
	s.combine(e, device.Term{A: a.Keep, V: e}, device.Term{A: r.Alpha, V: s.g})
	q, err := r.Compress(e, 0)
	if err != nil {
		return err
	}
	s.post(r, q.Vectors...)
	w := s.Scratch.(*momenta)
	w.own = device.SparseTerm{A: 1, V: q.Vectors[0], Idx: q.Index}
	sent := r.Acquire(e.Len())
	s.do(device.Combine(sent))
	s.add(sent, w.own)
	r.Inverse(s.g, sent)
	s.combine(e, device.Term{A: 1, V: e}, device.Term{A: -1, V: s.g})
	return nil
}

func (a DeMo) Mix(s *State, r *Round) error {
	w := s.Scratch.(*momenta)
	r.Active = true // every agent sends
	if err := s.collectAnnounced(r, announcement{algo: a.Name(), of: 1}, w.own); err != nil {
		return err
	}
	for i := range s.parts {
		s.parts[i].A = 1
	}
	step := s.g
	if r.Shared != nil {
		step = r.Shared(0, func(dst device.Vector) { w.signs(s, r, dst) })
	} else {
		w.signs(s, r, step)
	}
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: step})
	return nil
}

// signs sets dst to the sign of the mean of what all agents sent, which is in s.parts.
func (w *momenta) signs(s *State, r *Round, dst device.Vector) {
	if w.ones == nil {
		w.ones = s.newOnes(w.own.V.Len())
	}
	sums, counts := r.Acquire(dst.Len()), r.Acquire(dst.Len())
	s.sumParts(sums)
	for i := range s.parts {
		s.parts[i].V = w.ones
	}
	s.sumParts(counts)
	r.Signs(dst, sums, counts)
}
