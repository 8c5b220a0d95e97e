package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// DoCoM tracks estimates of variance-reduced gradients, with compressed differences of both
// trackers and models in two exchanges (Yau and Wai 2022). G and H are public copies of the
// trackers and of the models, known to all neighbours, and SG = W·G and SH = W·H are kept up to
// date. With Q the compressor, and both gradients of an iteration of the same batch,
//
//	v' = g(x) + (1-a)(v - g(x_old))    y = g + v' - v    v ← v'     G ← G + Q(y - G)
//	after the first exchange:  g = y + theta·(SG - G)    x_old ← x
//	                           y = x - alpha·g                      H ← H + Q(y - H)
//	after the second:          x = y + theta·(SH - H)
//
// At the start v and g are zero, and v' is the gradient. With a = 1, Q the identity and theta = 1
// it is [DSGT] started at W·g.
//
// Invariants, for every contraction: the mean of g is the mean of v, SG = W·G, SH = W·H, and the
// mean model moves by -alpha·mean(g). With exact gradients the agents reach the optimum.
//
// Departures: the paper has no exchange of trackers in the first iteration, and starts with a large
// batch; the messages of the authors' program are an iteration late, and this is the paper's order.
type DoCoM struct {
	Theta float64 // consensus step size; smaller for sparser compressors
	A     float64 // weight of the newest gradient; 1: no variance reduction
}

var docom = Method{Name: "docom", Keys: []setting.Key{Theta, primalWeight, compress, norms}, Check: checkCompressed,
	New: func(s Settings) Algorithm { return DoCoM{Theta: s.Param("theta"), A: s.Param("a_x")} }}

const (
	docomV        = iota // The vectors of State.Aux begin with v.
	docomTracker         // g
	docomPrevious        // x_old
	docomCopyG           // G
	docomSumG            // SG
	docomCopyH           // H
	docomSumH            // SH
)

// docomScratch is the working memory of an agent.
type docomScratch struct {
	g, x device.SparseTerm
}

func (DoCoM) Name() string { return "docom" }

func (a DoCoM) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"v", "tracker", "previous", "g", "sg", "h", "sh"},
			Work: 1, NewScratch: func() any { return &docomScratch{} }},
		Exchange: Exchange{Edges: Broadcast, Code: CompressedCode, Masks: true, Mixing: true,
			Between: []Stage{a.adapt}},
		Membership: Membership{Regroup: a.regroup},
		About: About{"two compressed differences, one after the other", "payloads of both; indices of randk once", "7",
			exactOnSkew, "any graph, agents that broadcast", "Yau and Wai 2022"},
	}
}

// regroup makes each tracker its agent's own estimate, which new members have of the donor, and
// begins the public copies anew.
func (DoCoM) regroup(s *State, g *Group) error {
	v, tracker := s.Aux[docomV], s.Aux[docomTracker]
	if err := g.Copy(v, s.Aux[docomPrevious]); err != nil {
		return err
	}
	s.copy(tracker, v)
	if err := s.republish(g, tracker, s.Aux[docomCopyG], s.Aux[docomSumG]); err != nil {
		return err
	}
	return s.republish(g, s.X, s.Aux[docomCopyH], s.Aux[docomSumH])
}

func (a DoCoM) Local(s *State, r *Round) (err error) {
	w, v, tracker := s.Scratch.(*docomScratch), s.Aux[docomV], s.Aux[docomTracker]
	if err := r.Grad(s.g, s.X); err != nil { // the first counts as the training step
		return err
	}
	if r.T > 0 && a.A < 1 {
		old := s.Work[0]
		if err := r.Grad(old, s.Aux[docomPrevious]); err != nil {
			return err
		}
		s.plan(s.g, device.Term{A: 1, V: s.g}, device.Term{A: 1 - a.A, V: v}, device.Term{A: a.A - 1, V: old})
	}
	s.plan(tracker, device.Term{A: 1, V: tracker}, device.Term{A: 1, V: s.g}, device.Term{A: -1, V: v})
	s.Aux[docomV], s.g = s.g, v
	w.g, err = s.announce(r, 0, tracker, s.Aux[docomCopyG])
	return err
}

func (a DoCoM) adapt(s *State, r *Round) (err error) {
	w, tracker := s.Scratch.(*docomScratch), s.Aux[docomTracker]
	if err := s.planGossip(r, announcement{a.Name(), 0, 1}, w.g, a.Theta, tracker, docomCopyG, docomSumG); err != nil {
		return err
	}
	s.X, s.Aux[docomPrevious] = s.Aux[docomPrevious], s.X
	s.plan(s.X, device.Term{A: 1, V: s.Aux[docomPrevious]}, device.Term{A: -r.Alpha, V: tracker})
	w.x, err = s.announce(r, 1, s.X, s.Aux[docomCopyH])
	return err
}

func (a DoCoM) Mix(s *State, r *Round) error {
	w := s.Scratch.(*docomScratch)
	return s.gossip(r, announcement{a.Name(), 1, 2}, w.x, a.Theta, s.X, docomCopyH, docomSumH)
}
