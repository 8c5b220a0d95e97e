package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// SPARTA averages a few coordinates of the models over all agents in every iteration (exogym 2025).
// After a local step, on the coordinates k of a mask that all agents draw from the iteration alone,
//
//	x ← x - alpha·u        x[k] ← mean of x[k]
//
// The averages of the optimizer are left alone. With all coordinates it is local SGD with averages
// after every step. All agents sum in the order of their numbers: afterwards they hold the same
// bits on k. The mean model moves by -alpha·mean(u). It is biased if agents hold different data and
// average few coordinates.
type SPARTA struct {
	Every int // iterations from one average to the next; 1 is every iteration
	Descent
}

var sparta = Method{Name: "sparta", Keys: []setting.Key{LocalSteps},
	New: func(s Settings) Algorithm { return SPARTA{Every: s.Whole("local_steps"), Descent: s.Descent} }}

func (SPARTA) Name() string { return "sparta" }

func (a SPARTA) Traits() Traits {
	return Traits{
		Exchange:   Exchange{Edges: AllReduce, Masks: true, Reduce: a.reduce},
		Rounds:     Rounds{Period: a.Every, Scheduled: true, LocalSteps: 1},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: keepVectors},
		About: About{"k values of the model, an all-reduce", "2·(n-1)·v·k", "0", "bias, which grows as k falls",
			"none", "exogym 2025"},
	}
}

func (a SPARTA) Local(s *State, r *Round) error {
	if err := a.Step(s, r, r.Alpha, s.X); err != nil || len(r.Links) == 0 {
		return err
	}
	own := r.Acquire(r.Links[0].Len) // all links have one mask
	s.do(device.Gather(own, s.X, r.Links[0].Mask))
	for i := range r.Links {
		r.Post(i, own)
	}
	return nil
}

func (a SPARTA) reduce(s *State, r *Round) error {
	err := s.collect(a.Name(), r, 0)
	if err == nil {
		s.reduce(r, s.fill.mean)
	}
	return err
}

func (a SPARTA) Mix(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return nil
	}
	if err := s.collect(a.Name(), r, 0); err != nil {
		return err
	}
	mask, mean := r.Links[0].Mask, s.reduce(r, s.fill.mean)
	if mask == nil && r.Shared != nil && r.Swap != nil { // models are sent with all their bits
		s.combine(s.X, device.Term{A: 1, V: mean})
		return nil
	}
	sent := r.Links[0].Sent[0]
	if mask != nil && r.Shared != nil { // each agent reduces a part
		sent = s.picked(r, s.X, mask)
	}
	if mask == nil {
		s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -1, V: sent}, device.Term{A: 1, V: mean})
		return nil
	}
	s.replace(s.X, mask, sent, mean)
	return nil
}
