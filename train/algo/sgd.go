package algo

import "fspda/device"

// SGD is central SGD, the reference curve: all agents hold one model and move it by the mean of their directions,
//
//	x ← x - alpha·(1/n)·Σ u
//
// Everybody posts u to everybody and sums in the order of the agents, so all copies of x stay equal to the bit.
type SGD struct {
	Mu float64 // heavy ball; 0 is off
}

var _ Collective = SGD{}

func (SGD) Name() string { return "sgd" }

// Collective marks the all-reduce.
func (SGD) Collective() {}

func (a SGD) Aux() []string {
	if a.Mu == 0 {
		return nil
	}
	return []string{"momentum"}
}

func (a SGD) Local(s *State, r *Round) error {
	u, err := direction(s, r, a.Mu, 0)
	if err != nil {
		return err
	}
	if len(r.Links) == 0 { // one agent alone: its direction is the mean
		s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u})
		s.Dev.Combine(s.X, s.terms...)
		return nil
	}
	b := r.Buffer(u.Len())
	s.Dev.Gather(b, u, nil)
	for i := range r.Links {
		r.Post(i, b)
	}
	return nil
}

func (a SGD) Mix(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return nil
	}
	step := -r.Alpha / float64(len(r.Links)+1)
	s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X})
	own := r.Links[0].Own[0]
	placed := false
	for _, l := range r.Links { // ascending peers, with oneself in place: the same sum at every agent
		if !placed && l.Peer > r.Self {
			s.terms = append(s.terms, device.Term{A: step, V: own})
			placed = true
		}
		if l.Heard == nil {
			return &MissingError{Algorithm: a.Name(), T: r.T, Self: r.Self, Peer: l.Peer}
		}
		s.terms = append(s.terms, device.Term{A: step, V: l.Heard[0]})
	}
	if !placed {
		s.terms = append(s.terms, device.Term{A: step, V: own})
	}
	s.Dev.Combine(s.X, s.terms...)
	return nil
}
