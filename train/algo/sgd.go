package algo

import "fspda/device"

// SGD is central SGD, the reference: all agents hold the same model and move it by the mean of
// their directions,
//
//	x ← x - alpha·(1/n)·Σ u
//
// Every agent sends u to all others and sums in the order of the agents, so all copies of x stay
// bit-identical.
type SGD struct{ Descent }

var _ AllReducer = SGD{}

func (SGD) Name() string { return "sgd" }

// AllReduces marks the all-reduce.
func (SGD) AllReduces() {}

func (SGD) Aux() []string { return nil }

func (a SGD) Local(s *State, r *Round) error {
	u, err := a.direction(s, r, r.Alpha, s.X)
	if err != nil {
		return err
	}
	if len(r.Links) == 0 { // a single agent: its direction is the mean
		s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u})
		s.Dev.Combine(s.X, s.terms...)
		return nil
	}
	s.sendAll(r, u)
	return nil
}

func (a SGD) Mix(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return nil
	}
	sum, err := s.sumAll(a.Name(), r) // u was posted and is no longer needed
	if err != nil {
		return err
	}
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha / float64(len(r.Links)+1), V: sum})
	return nil
}
