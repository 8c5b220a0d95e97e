package algo

import (
	"slices"

	"fspda/device"
)

// announce compresses v - public, posts the result q as message number which of the iteration, and
// adds q to public, the copy of v that all neighbours know. It returns the agent's own term w_ii·q
// of the sum that [State.gossip] makes. An agent that is not active announces nothing. Planned
// operations are computed first. announce overwrites the gradient.
func (s *State) announce(r *Round, which int, v, public device.Vector) (own device.SparseTerm, err error) {
	if !r.Active {
		s.flush()
		return own, nil
	}
	if at := r.picks(which); at != nil {
		return s.announceAt(r, public, at, v, nil), nil
	}
	s.plan(s.g, device.Term{A: 1, V: v}, device.Term{A: -1, V: public})
	s.flush()
	q, err := r.Compress(s.g, which)
	if err != nil {
		return own, err
	}
	s.post(r, q.Vectors...)
	s.add(public, device.SparseTerm{A: 1, V: q.Vectors[0], Idx: q.Index})
	return device.SparseTerm{A: r.SelfWeight, V: q.Vectors[0], Idx: q.Index}, nil
}

// picks returns the coordinates that message number which of the iteration takes of any vector, if
// the agent is active; nil: they depend on the vector, or are all.
func (r *Round) picks(which int) device.Index {
	if !r.Active || r.Picks == nil {
		return nil
	}
	return r.Picks(which)
}

// announceAt is announce of the sum of v and w, or of v if w is nil, for a compressor that takes
// known coordinates. Planned operations are computed first. It changes no other vector than public.
func (s *State) announceAt(r *Round, public device.Vector, at device.Index, v, w device.Vector) device.SparseTerm {
	q := r.Acquire(at.Len())
	s.flush()
	s.do(device.MoveCopy(q, public, v, w, at))
	s.post(r, q)
	return device.SparseTerm{A: r.SelfWeight, V: q, Idx: at}
}

// picked returns a pooled vector of the numbers of v at these coordinates; nil: of all.
func (s *State) picked(r *Round, v device.Vector, at device.Index) device.Vector {
	if at == nil {
		return s.copied(r, v)
	}
	part := r.Acquire(at.Len())
	s.do(device.Gather(part, v, at))
	return part
}

// announcement is one of the messages that an algorithm announces in an iteration.
type announcement struct {
	algo      string
	which, of int // message number which of so many
}

// gossip adds theta·(s - c) to v: s is the sum in s.Aux[sum], to which [State.addAnnounced] first
// adds what was announced, and c the agent's public copy in s.Aux[public].
func (s *State) gossip(r *Round, m announcement, own device.SparseTerm, theta float64, v device.Vector,
	public, sum int) error {
	if err := s.planGossip(r, m, own, theta, v, public, sum); err != nil {
		return err
	}
	s.flush()
	return nil
}

// planGossip is gossip, but the step of v is planned only.
func (s *State) planGossip(r *Round, m announcement, own device.SparseTerm, theta float64, v device.Vector,
	public, sum int) error {
	if err := s.addAnnounced(r, m, own, sum); err != nil {
		return err
	}
	s.plan(v, device.Term{A: 1, V: v}, device.Term{A: theta, V: s.Aux[sum]},
		device.Term{A: -theta, V: s.Aux[public]})
	return nil
}

// addAnnounced adds Σ_j w_ij·q_j to s.Aux[sum] over the announcements of all active neighbours, and
// the agent's own term if it is active, ordered by agent. Where all agents have the same sums,
// the agents of a worker share one vector.
func (s *State) addAnnounced(r *Round, m announcement, own device.SparseTerm, sum int) error {
	if err := s.collectAnnounced(r, m, own); err != nil {
		return err
	}
	switch {
	case len(s.parts) == 0:
	case r.Shared == nil || !r.equalWeights():
		s.do(device.ScatterAdd(s.Aux[sum], s.parts...))
	default:
		for i := range s.parts {
			s.parts[i].A = r.Links[0].FixedWeight
		}
		s.old = s.Aux[sum]
		s.Aux[sum] = s.retain(r, r.Shared(m.which, s.fill.parts), s.old)
	}
	return nil
}

// collectAnnounced lists the received terms and the agent's own term, ordered by agent.
func (s *State) collectAnnounced(r *Round, m announcement, own device.SparseTerm) error {
	s.parts = s.parts[:0]
	at := 0
	for i := range r.Links {
		l := &r.Links[i]
		if l.PeerInactive {
			continue
		}
		if l.Received == nil {
			return &MissingMessageError{Algorithm: m.algo, T: r.T, Self: r.Self, Peer: l.Peer}
		}
		s.parts = append(s.parts, l.term(m))
		if l.Peer < r.Self {
			at = len(s.parts)
		}
	}
	if r.Active {
		s.parts = slices.Insert(s.parts, at, own)
	}
	return nil
}

// term returns the values of an announcement that was received, with the weight of the link.
func (l *Link) term(m announcement) device.SparseTerm {
	t := device.SparseTerm{A: l.FixedWeight, V: l.Received[m.which*len(l.Received)/m.of]}
	if len(l.Coords) > m.which {
		t.Idx = l.Coords[m.which]
	}
	return t
}

// equalWeights reports whether the mixing matrix has the agent's own weight on all its links, after
// rounding to float32: it is 1 minus the others, so it may differ in the last bits of float64.
func (r *Round) equalWeights() bool {
	return !slices.ContainsFunc(r.Links, func(l Link) bool { return float32(l.FixedWeight) != float32(r.SelfWeight) })
}
