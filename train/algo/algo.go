package algo

import "fspda/device"

// Algorithm moves one agent. It is immutable and shared by all agents.
type Algorithm interface {
	// Name is how people choose it: "fspda-sa".
	Name() string
	// Aux names the vectors besides x that an agent remembers between iterations, in the order of State.Aux. All start as zeros.
	Aux() []string
	// Local is the agent's half of an iteration alone. It reads s.X, posts to the round's links, and calls r.Grad.
	Local(s *State, r *Round) error
	// Mix is the half after the links were heard. Links that heard nothing are idle.
	Mix(s *State, r *Round) error
}

// Collective is an Algorithm in which everybody hears everybody in every iteration, whatever the graph: an all-reduce. Its cost
// is that of a ring all-reduce and not that of its links.
type Collective interface {
	Algorithm
	Collective()
}

// Broadcast is an Algorithm whose messages go one way: an agent that is active speaks to all its neighbours and need not hear them.
// Its links are those of the whole graph, with the weights of the mixing matrix.
type Broadcast interface {
	Algorithm
	Broadcast()
}

// State is what one agent remembers, and its scratch space. X and Aux are its whole memory: saved and restored, the agent goes on
// with the same bits.
type State struct {
	Dev device.Device
	X   device.Vector   // the model, length d
	Aux []device.Vector // as named by Algorithm.Aux, each of length d

	g     device.Vector // gradient of the current iteration; nothing of it lasts
	terms []device.Term
	to    []device.Term
}

// NewState returns the state of an agent that starts at x^0. The vector x becomes the agent's own.
func NewState(a Algorithm, dev device.Device, x device.Vector) *State {
	s := &State{Dev: dev, X: x, g: dev.NewVector(x.Len())}
	for range a.Aux() {
		s.Aux = append(s.Aux, dev.NewVector(x.Len()))
	}
	return s
}

// Aux returns the remembered vector of that name, or nil.
func Aux(a Algorithm, s *State, name string) device.Vector {
	for i, n := range a.Aux() {
		if n == name {
			return s.Aux[i]
		}
	}
	return nil
}

// Round is all an agent may look at in iteration T.
type Round struct {
	T, Self    int     // iteration, agent
	Alpha, Eta float64 // step sizes of this iteration; Alpha/Eta is constant over a schedule
	Links      []Link  // this iteration's edges at the agent, ordered by peer

	// Grad writes the gradient of this iteration's batch at x, L2 term included, to dst.
	Grad func(dst, x device.Vector) error
	// Buffer lends a vector of length n to fill and post. The round takes it back.
	Buffer func(n int) device.Vector
	// Post sends vectors over Links[link] and keeps them there as Own. They must not change any more.
	Post func(link int, values ...device.Vector)

	// Next lets go of the iteration's batch: Grad goes on with a new one. It is for several steps in one iteration.
	Next func()

	Weight float64 // a Broadcast's weight of the agent's own vector; Link.Weight has those of the others
	Speaks bool    // a Broadcast's: the agent is active and speaks to all its links
	// Pack compresses v, which it leaves as it is. It is for a Broadcast.
	Pack func(v device.Vector) (Packed, error)
	// Encode writes the codes of x to dst, Decode what codes mean near ref; the agent's vectors are told apart by the number which.
	// Both are nil where vectors travel as they are.
	Encode func(dst, x device.Vector, which int) error
	Decode func(dst, codes, ref device.Vector) error
}

// Packed is a compressed vector, as its receivers have it. The round lends it.
type Packed struct {
	Parts  []device.Vector // to be posted: first the values, then what else the receivers need
	Coords device.Index    // the coordinates of the values; nil means all
}

// Link is one active edge as one of its ends sees it.
type Link struct {
	Peer   int
	Mask   device.Index    // the coordinates that travel; nil means all. Equal at both ends.
	Len    int             // how many coordinates those are
	Weight float64         // Metropolis weight of the edge on this iteration's active graph
	Begins bool            // this end is the initiator of the exchange
	Silent bool            // in a Broadcast: the other end does not speak in this iteration
	Own    []device.Vector // what this end posted
	Heard  []device.Vector // what the other end posted; nil: the edge did not happen
}

// gatherAndPost posts the masked coordinates of v over every link.
func gatherAndPost(s *State, r *Round, v device.Vector) {
	for i := range r.Links {
		l := &r.Links[i]
		b := r.Buffer(l.Len)
		s.Dev.Gather(b, v, l.Mask)
		r.Post(i, b)
	}
}

// direction takes the gradient at s.X and returns u: the gradient itself, or the heavy ball u ← mu·u + g that stands in s.Aux[at].
func direction(s *State, r *Round, mu float64, at int) (device.Vector, error) {
	if err := r.Grad(s.g, s.X); err != nil {
		return nil, err
	}
	if mu == 0 {
		return s.g, nil
	}
	u := s.Aux[at]
	s.terms = append(s.terms[:0], device.Term{A: mu, V: u}, device.Term{A: 1, V: s.g})
	s.Dev.Combine(u, s.terms...)
	return u, nil
}

// descend makes the step x ← x - alpha·u along the direction of the current batch.
func descend(s *State, r *Round, mu float64, at int) error {
	u, err := direction(s, r, mu, at)
	if err != nil {
		return err
	}
	s.terms = append(s.terms[:0], device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u})
	s.Dev.Combine(s.X, s.terms...)
	return nil
}
