package algo

import (
	"slices"

	"fspda/device"
)

// Membership says how the agents of an algorithm go on when others leave or join during a run.
type Membership struct {
	// Regroup sets the vectors of a member to those with which it goes on. It is called at all
	// members, at the head of the same iteration. Those that joined have the model, the optimizer's
	// vectors and the averages of the donor then, and the algorithm's own vectors as at the start.
	// The memory of edges to them is as at the start, at both ends. If Regroup is nil, members
	// cannot change.
	Regroup func(s *State, g *Group) error
	// Rigid says why members cannot change, to complete a sentence that begins with the method.
	Rigid string
}

// Group is the members of a run at a change of them, as one of them sees it. All members must call
// its functions alike: each is an exchange.
type Group struct {
	Members []int // The members from now on, ascending.
	Joined  []int // The new ones among them, ascending.
	Self    int   // The member that sees it.

	// Sum sets dst to the sum of v over the members that were there before, in the order of their
	// numbers, in plain float32. All members get the same bits. dst may be v.
	Sum func(dst, v device.Vector) error
	// Copy sets vectors of new members to the donor's.
	Copy func(vs ...device.Vector) error
	// Mix sets dst to the average of v over the member and its neighbours among the members, with the
	// weights of the mixing matrix, where absent neighbours have the member's own values.
	Mix func(dst, v device.Vector) error
	// Acquire returns a pooled vector of length n with undefined contents, until the change is over. A
	// member has no gradient vector meanwhile.
	Acquire func(n int) device.Vector
}

// Joins reports whether the member is a new one.
func (g *Group) Joins() bool { return slices.Contains(g.Joined, g.Self) }

// keepVectors is Membership.Regroup of algorithms in which nothing is conserved over the agents.
func keepVectors(*State, *Group) error { return nil }

// restart returns Membership.Regroup of a recursion that starts again from the models: it sets these
// vectors of Aux to zero.
func restart(aux ...int) func(*State, *Group) error {
	return func(s *State, _ *Group) error {
		for _, k := range aux {
			s.do(device.Combine(s.Aux[k]))
		}
		return nil
	}
}

// recentre returns Membership.Regroup of an algorithm with these vectors of Aux that sum to zero over
// the agents: the mean over the members is subtracted from them. Without those that left they would
// not sum to zero, and the models would never reach an optimum.
func recentre(aux ...int) func(*State, *Group) error {
	return func(s *State, g *Group) error {
		for _, k := range aux {
			if err := s.recentre(g, s.Aux[k]); err != nil {
				return err
			}
		}
		return nil
	}
}

// recentre subtracts the mean over the members from v, which is zero at new ones.
func (s *State) recentre(g *Group, v device.Vector) error {
	sum := g.Acquire(v.Len())
	if err := g.Sum(sum, v); err != nil {
		return err
	}
	s.combine(v, device.Term{A: 1, V: v}, device.Term{A: -1 / float64(len(g.Members)), V: sum})
	return nil
}

// republish makes v itself the public copy of v, and the sum of copies the average of v over the
// neighbours: the first messages after a change of the members are whole.
func (s *State) republish(g *Group, v, public, sum device.Vector) error {
	s.copy(public, v)
	return g.Mix(sum, v)
}

// Reset sets the algorithm's own vectors of an agent that joins as at the start, and begins the
// memory of edges to new members anew at both ends. donated is the donor's model.
func (s *State) Reset(a Algorithm, g *Group, donated device.Vector) {
	t := a.Traits()
	if g.Joins() {
		for _, v := range s.Aux[:s.own] {
			s.do(device.Combine(v))
		}
		copy(s.Scalars, t.Scalars)
	}
	for _, m := range s.Edges {
		if !g.Joins() && !slices.Contains(g.Joined, m.Peer) {
			continue
		}
		m.Count = 0
		for k, n := range t.EdgeVectors {
			if n == ModelLength && t.EdgesFromModel {
				s.copy(m.Vectors[k], donated)
			} else {
				s.do(device.Combine(m.Vectors[k]))
			}
		}
	}
}

// Donated lists the vectors that a new member copies from the donor besides the model: the
// optimizer's and the average.
func (s *State) Donated() []device.Vector { return s.Aux[s.own:] }
