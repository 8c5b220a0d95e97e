package algo

import "fspda/device"

// sendAll posts v, which is pooled or the gradient vector of s, and behind it more, over all links,
// for an all-reduce. The gradient vector becomes another one. Without links it stays as it is.
func (s *State) sendAll(r *Round, v device.Vector, more ...device.Vector) {
	if len(r.Links) == 0 {
		return
	}
	b := v
	switch {
	case v == s.g && r.Swap != nil:
		s.g = r.Swap(v)
	case v == s.g:
		b = s.copied(r, v)
	}
	all := [3]device.Vector{b}
	for k, v := range more {
		all[1+k] = s.copied(r, v)
	}
	for i := range r.Links {
		r.Post(i, all[:1+len(more)]...)
	}
}

// sumAll returns the sum over all agents of the k-th vectors that they posted by sendAll, in the
// order of the agents: all of them get the same bits. It is in dst or in a shared vector. Without
// links it returns the gradient vector.
func (s *State) sumAll(name string, r *Round, k int, dst device.Vector) (device.Vector, error) {
	if len(r.Links) == 0 {
		return s.g, nil
	}
	if err := s.collect(name, r, k); err != nil {
		return nil, err
	}
	if r.Shared != nil {
		return r.Shared(k, s.fill.terms), nil
	}
	s.sumTerms(dst)
	return dst, nil
}

// collect sets s.terms to the k-th vectors of all agents in their order, with factors of 1.
func (s *State) collect(name string, r *Round, k int) error {
	s.terms = s.terms[:0]
	for _, l := range r.Links {
		if l.Received == nil {
			return &MissingMessageError{Algorithm: name, T: r.T, Self: r.Self, Peer: l.Peer}
		}
		s.terms = append(s.terms, device.Term{V: l.Received[k]})
	}
	s.inOrder(r, r.Links[0].Sent[k])
	return nil
}

// reduce returns the first vector that fill writes of s.terms.
func (s *State) reduce(r *Round, fill func(dst device.Vector)) device.Vector {
	if r.Shared != nil {
		return r.Shared(0, fill)
	}
	dst := r.Acquire(r.Links[0].Len)
	fill(dst)
	return dst
}

// meanTerms writes the mean of s.terms, as the first of them less the mean of the differences.
func (s *State) meanTerms(dst device.Vector) {
	s.sumDiffs(dst)
	s.combine(dst, device.Term{A: 1, V: s.terms[0].V}, device.Term{A: -1 / float64(len(s.terms)), V: dst})
}

// replace sets coordinates of v, whose numbers are given, to others. They become them to the bit,
// since v - old is zero.
func (s *State) replace(v device.Vector, at device.Index, old, by device.Vector) {
	s.add(v, device.SparseTerm{A: -1, V: old, Idx: at}, device.SparseTerm{A: 1, V: by, Idx: at})
}
