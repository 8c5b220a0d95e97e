package algo

import "fspda/device"

// Algorithm moves one agent. It is immutable and shared by all agents.
type Algorithm interface {
	// Name is how people choose it: "fspda-sa".
	Name() string
	// Aux names the vectors besides x that an agent remembers between iterations, in the order of
	// State.Aux. All start as zeros.
	Aux() []string
	// Local is the agent's half of an iteration alone. It reads s.X, posts to the round's links,
	// and calls r.Grad.
	Local(s *State, r *Round) error
	// Mix is the half after the links were heard. Links that heard nothing are idle.
	Mix(s *State, r *Round) error
}

// Collective is an Algorithm in which everybody hears everybody in every iteration, whatever the
// graph: an all-reduce. Its cost is that of a ring all-reduce and not that of its links.
type Collective interface {
	Algorithm
	Collective()
}

// Broadcast is an Algorithm whose messages go one way: an agent that is active speaks to all its
// neighbours and need not hear them. Its links are those of the whole graph, with the weights of
// the mixing matrix.
type Broadcast interface {
	Algorithm
	Broadcast()
}

// Rounded is an Algorithm whose iterations come in rounds: iterations 0 to Round()-1 are the first.
// The agents communicate in the last iteration of a round, the step sizes of its first one hold
// throughout, and the models mean something between rounds only.
type Periodic interface {
	Algorithm
	Period() int
}

// Scratcher is an Algorithm with working memory of its own, one value per agent. The value does not
// outlive the process: an agent restored from a checkpoint starts with a new one.
type Scratcher interface {
	Algorithm
	// NewScratch returns the working memory of one agent, kept in State.Scratch. It allocates
	// vectors of length d by newVector.
	NewScratch(newVector func() device.Vector) any
}

// ScratchVectors returns the number of vectors of length d in the working memory of an agent.
func ScratchVectors(a Algorithm) (n int) {
	if w, ok := a.(Scratcher); ok {
		w.NewScratch(func() device.Vector { n++; return nil })
	}
	return n
}

// Talker is an Algorithm that posts other than one vector over a link.
type MultiVector interface {
	Algorithm
	Vectors() int
}

// Tracker is an Algorithm with a remembered vector that sums to zero over the agents and that,
// where training ends, holds a multiple of ∇F - ∇f_i. Metrics watch both.
type Tracker interface {
	Algorithm
	// Tracked names the vector and returns the multiple at constant step sizes alpha and eta.
	Tracked(alpha, eta float64) (name string, multiple float64)
}

// State is one agent: its persistent vectors and its working memory. X and Aux are all that a
// checkpoint stores: with them restored, the agent continues with the same bits.
type State struct {
	Dev     device.Device
	X       device.Vector   // the model, length d
	Aux     []device.Vector // named by Algorithm.Aux, each of length d
	Scratch any             // the working memory of a Scratcher

	g device.Vector // gradient of the current iteration

	// operand lists, reused so that an iteration allocates none
	terms []device.Term
	base  []device.Term
	to    []device.Term
	parts []device.SparseTerm

	fill fillers
}

// NewState returns the state of an agent that starts at x^0. It takes ownership of x.
func NewState(a Algorithm, dev device.Device, x device.Vector) *State {
	newVector := func() device.Vector { return dev.NewVector(x.Len()) }
	s := &State{Dev: dev, X: x, g: newVector()}
	s.fill = fillers{s.sumTerms, s.sumDiffs, s.sumParts}
	for range a.Aux() {
		s.Aux = append(s.Aux, newVector())
	}
	if w, ok := a.(Scratcher); ok {
		s.Scratch = w.NewScratch(newVector)
	}
	return s
}

// Gradient is the agent's vector for the gradient of the current iteration, free to use as
// algorithms like: nothing of it lasts.
func (s *State) Gradient() device.Vector { return s.g }

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

	// Grad writes the gradient of this iteration's batch at x, L2 term included, to dst. The first
	// call of an iteration is its training step; later calls, at other points, see the same batch.
	Grad func(dst, x device.Vector) error
	// Buffer lends a vector of length n to fill and post. The round takes it back.
	Acquire func(n int) device.Vector
	// Trade takes v, which becomes a lent vector to post, and gives the agent another one of its
	// length for it, with whatever stands there. It saves a copy. Where it is nil, copy.
	Swap func(v device.Vector) device.Vector
	// Post sends vectors over Links[link] and keeps them there as Own. They must not change any
	// more.
	Post func(link int, values ...device.Vector)

	// Next lets go of the iteration's batch: Grad goes on with a new one. It is for several steps
	// in one iteration.
	NextBatch func()

	// Common lends the vector that fill writes, of several in an iteration the one with the number
	// which. It is the same for all agents of this process who ask for it in Mix, and whoever comes
	// first fills it: so fill may depend only on what all agents posted, and sums in the order of
	// their numbers. It is nil unless each agent hears all others in this iteration, and of each
	// all coordinates or those that it picked.
	Shared func(which int, fill func(dst device.Vector)) device.Vector

	SelfWeight float64 // weight of the agent's own vector in the run's fixed mixing matrix W
	Active     bool    // in a Broadcast: the agent is active and speaks to all its links
	// Pack compresses v, which it leaves as it is. It is for a Broadcast.
	Compress func(v device.Vector) (Compressed, error)
	// Encode writes the codes of x to dst, Decode what codes mean near ref; the agent's vectors are
	// told apart by the number which. Both are nil where vectors travel as they are.
	Encode func(dst, x device.Vector, which int) error
	Decode func(dst, codes, ref device.Vector) error
}

// Packed is a compressed vector, as its receivers have it. The round lends it.
type Compressed struct {
	Vectors []device.Vector // to be posted: first the values, then what else the receivers need
	Index   device.Index    // the coordinates of the values; nil means all
}

// Link is one active edge as one of its ends sees it.
type Link struct {
	Peer         int
	Mask         device.Index // the coordinates that travel; nil means all. Equal at both ends.
	Len          int          // how many coordinates those are
	ActiveWeight float64      // Metropolis weight of the edge on this iteration's active graph
	Initiator    bool         // this end is the initiator of the exchange
	PeerInactive bool         // in a Broadcast: the other end does not speak in this iteration
	// weight of the edge in the run's fixed mixing matrix W; 0 where the algorithm uses none
	FixedWeight float64
	Sent        []device.Vector // what this end posted
	Received    []device.Vector // what the other end posted; nil: the edge did not happen
}

// Send posts copies of the masked coordinates of each v over every link. Links without a mask share
// one copy.
func (s *State) Send(r *Round, vs ...device.Vector) {
	var dense []device.Vector
	for i := range r.Links {
		l := &r.Links[i]
		own := dense
		if l.Mask != nil || own == nil {
			own = make([]device.Vector, len(vs))
			for k, v := range vs {
				own[k] = r.Acquire(l.Len)
				s.Dev.Gather(own[k], v, l.Mask)
			}
		}
		if l.Mask == nil {
			dense = own
		}
		r.Post(i, own...)
	}
}

// SendModel is Send of s.X for algorithms that write all of s.X anew before the iteration ends, as
// what it returns is where the model stands that was sent. On links that carry all of it nothing is
// copied.
func (s *State) SendModel(r *Round) (x device.Vector) {
	if len(r.Links) == 0 || r.Links[0].Mask != nil || r.Swap == nil {
		s.Send(r, s.X)
		return s.X
	}
	x = s.X
	s.X = r.Swap(x)
	for i := range r.Links {
		r.Post(i, x)
	}
	return x
}

// targets lists the terms of an AddDiff in memory of the agent's own.
func (s *State) targets(terms ...device.Term) []device.Term {
	s.to = append(s.to[:0], terms...)
	return s.to
}

// combine is Dev.Combine with its terms in memory of the agent's own.
func (s *State) combine(dst device.Vector, terms ...device.Term) {
	s.terms = append(s.terms[:0], terms...)
	s.Dev.Combine(dst, s.terms...)
}

// direction takes the gradient at x and returns u: the gradient itself, or the heavy ball u ← mu·u
// + g that stands in s.Aux[at].
func direction(s *State, r *Round, x device.Vector, mu float64, at int) (device.Vector, error) {
	if err := r.Grad(s.g, x); err != nil {
		return nil, err
	}
	if mu == 0 {
		return s.g, nil
	}
	u := s.Aux[at]
	s.combine(u, device.Term{A: mu, V: u}, device.Term{A: 1, V: s.g})
	return u, nil
}

// descend makes the step x ← x - alpha·u along the direction of the current batch.
func descend(s *State, r *Round, mu float64, at int) error {
	u, err := direction(s, r, s.X, mu, at)
	if err != nil {
		return err
	}
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u})
	return nil
}
