package algo

import (
	"fmt"

	"fspda/device"
	"fspda/train/setting"
)

// SGP is stochastic gradient push (Assran, Loizou, Ballas and Rabbat 2019, algorithm 1): push-sum
// on directed graphs. What an agent has is divided among itself and those to which it sends, so
// that the weights are column stochastic: p_ij = 1/(1+outdegree of j). A weight w, 1 at the start,
// corrects for agents that get more than they give. With z the model,
//
//	X = w·z - alpha·u            with the gradient at z
//	X ← Σ_j p_ij·X_j        w ← Σ_j p_ij·w_j        z = X/w        (j = i included)
//
// On regular graphs, where each agent sends to as many as it receives from, w stays 1 and is not
// sent. State.X is z.
//
// Invariants: Σ w = n, and Σ X moves by -alpha·Σ u. Agents whose w is large move less. It is biased
// if agents hold different data. A lost message would lose a part of the sum, so it is an error.
type SGP struct {
	Regular bool // w stays 1
	Descent
}

var sgp = Method{Name: "sgp", Check: sgpStable,
	New: func(s Settings) Algorithm { return SGP{Regular: s.Regular, Descent: s.Descent} }}

// sgpStable refuses short values for the weights of push-sum: their sum would drift. It warns where
// weights may become small.
func sgpStable(r Run) ([]string, error) {
	edges := r.Text("edges")
	switch {
	case r.Settings().Regular:
		return nil, nil
	case r.ValueBits() < 32:
		return nil, setting.Invalid("wire", r.Text("wire"), "the weights that sgp sends with edges %s need 32 bits: "+
			"use wire fp32, or one-peer-exp or static-exp, which send none", edges)
	}
	return []string{fmt.Sprintf("edges %s let the weights of agents that give more than they get become small, "+
		"and the step of such an agent is alpha divided by its weight: if the run diverges, lower alpha, or use "+
		"one-peer-exp", edges)}, nil
}

const sgpWeight = 0 // in State.Scalars: w

func (SGP) Name() string { return "sgp" }

func (a SGP) Traits() Traits {
	t := Traits{
		Memory:     Memory{NewScratch: func() any { return &pushed{} }},
		Exchange:   Exchange{Edges: OneWay},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Shifts: true},
		Membership: Membership{Regroup: a.regroup},
		About: About{"the model, one way; a weight on irregular graphs", "v·d an arc; + 32 with a weight", "0",
			biasedOnSkew, "directed: one-peer-exp, static-exp, push(k), arcs(PATH)",
			"Assran, Loizou, Ballas and Rabbat 2019, algorithm 1"},
	}
	if !a.Regular {
		t.Scalars = []float64{1} // w
	}
	return t
}

// regroup sets the weights back to 1, so that they sum to the number of members.
func (a SGP) regroup(s *State, _ *Group) error {
	if !a.Regular {
		s.Scalars[sgpWeight] = 1
	}
	return nil
}

// pushed is what an agent has divided in an iteration: X and w, rounded as they were sent. An agent
// keeps X less what it sends of the rounded one, so that Σ X has all its bits.
type pushed struct {
	x      device.Vector
	w      float64
	one    device.Vector // a vector of length 1, which turns numbers into vectors and back
	packet []device.Vector
}

func (a SGP) Local(s *State, r *Round) error {
	if err := a.descendPush(s, r); err != nil {
		return err
	}
	p := s.Scratch.(*pushed)
	p.x, p.w = s.copied(r, s.X), 1
	p.packet = append(p.packet[:0], p.x)
	if !a.Regular {
		p.pack(s, r)
	}
	s.post(r, p.packet...)
	for i := range r.Links {
		if l := &r.Links[i]; !l.Mute { // the same on all such links
			p.x = l.Sent[0]
		}
	}
	return nil
}

// descendPush sets s.X to X = w·z - alpha·u.
func (a SGP) descendPush(s *State, r *Round) error {
	if a.Regular {
		return a.Step(s, r, r.Alpha, s.X)
	}
	u, err := a.Direction(s, r, r.Alpha, s.X)
	if err != nil {
		return err
	}
	s.combine(s.X, device.Term{A: s.Scalars[sgpWeight], V: s.X}, device.Term{A: -r.Alpha, V: u})
	return nil
}

// pack adds w to the message, as a vector of one number, and sets w to that number.
func (p *pushed) pack(s *State, r *Round) {
	if p.one == nil {
		p.one = s.Dev.NewVector(1)
		s.Dev.Write(p.one, []float32{1})
	}
	w := r.Acquire(1)
	s.combine(w, device.Term{A: s.Scalars[sgpWeight], V: p.one})
	p.w, p.packet = s.dot(w, p.one), append(p.packet, w)
}

func (a SGP) Mix(s *State, r *Round) error {
	p := s.Scratch.(*pushed)
	w := r.Keep * p.w
	s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X}, device.Term{A: r.Keep - 1, V: p.x})
	for i := range r.Links {
		l := &r.Links[i]
		if l.PeerInactive {
			continue
		}
		if l.Received == nil {
			return &MissingMessageError{Algorithm: a.Name(), T: r.T, Self: r.Self, Peer: l.Peer}
		}
		s.terms = append(s.terms, device.Term{A: l.Share, V: l.Received[0]})
		if !a.Regular {
			w += float64(l.Share * s.dot(l.Received[1], p.one))
		}
	}
	if !a.Regular {
		s.Scalars[sgpWeight] = w
		for i := range s.terms {
			s.terms[i].A /= w
		}
	}
	s.do(device.Combine(s.X, s.terms...))
	return nil
}
