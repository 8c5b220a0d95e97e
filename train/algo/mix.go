package algo

import (
	"slices"

	"fspda/device"
)

// LinkWeight returns the weight of a link's difference.
type LinkWeight func(l *Link) float64

// UnitWeight weighs all links by 1.
func UnitWeight(*Link) float64 { return 1 }

// FixedWeight is the weight in the run's fixed mixing matrix.
func FixedWeight(l *Link) float64 { return l.FixedWeight }

// ActiveWeight is the weight in this iteration's active graph, W_t.
func ActiveWeight(l *Link) float64 { return l.ActiveWeight }

// AddDifferences adds A·S to each V of the terms, where S = Σ w·(own - other) over the links with
// received vectors, using the k-th vector of each message. Whole vectors from several links are
// summed in one pass that reads each of them once; S is rounded before it is added.
func (s *State) AddDifferences(r *Round, k int, w LinkWeight, to ...device.Term) {
	s.addMasked(r, k, w, to)
	switch own := s.receiveWhole(r, k, w); len(s.terms) {
	case 0:
	case 1:
		s.do(device.AddDiff(own, s.terms[0].V, nil, s.scaled(s.terms[0].A, to)...))
	default:
		start := s.share(r, k, own)
		s.do(device.AddDiffs(start, own, s.terms, s.scaled(1, to)...))
	}
}

// CombineDifferences computes dst.V = Σ A·V over base and then AddDifferences with dst as the first
// term. The bits are the same, but with several links of whole vectors it needs one pass. dst.V may
// be a vector of base and no other operand.
func (s *State) CombineDifferences(r *Round, k int, w LinkWeight, dst device.Term, base []device.Term,
	to ...device.Term) {
	s.base = append(s.base[:0], base...)
	own := s.receiveWhole(r, k, w)
	if len(s.terms) < 2 || len(s.terms) < len(r.Links) && s.masked(r) {
		s.do(device.Combine(dst.V, s.base...))
		s.base = append(append(s.base[:0], dst), to...)
		s.AddDifferences(r, k, w, s.base...)
		return
	}
	start := s.share(r, k, own)
	s.to = append(append(s.to[:0], dst), to...)
	s.do(device.Combine(dst.V, s.base...), device.AddDiffs(start, own, s.terms, s.to...))
}

// masked reports whether a link carries only some coordinates.
func (s *State) masked(r *Round) bool {
	return slices.ContainsFunc(r.Links, func(l Link) bool { return l.Mask != nil })
}

// addMasked adds the differences of links with a mask, one after the other.
func (s *State) addMasked(r *Round, k int, w LinkWeight, to []device.Term) {
	for i := range r.Links {
		if l := &r.Links[i]; l.Mask != nil && len(l.Received) > k {
			s.do(device.AddDiff(l.Sent[k], l.Received[k], l.Mask, s.scaled(w(l), to)...))
		}
	}
}

// receiveWhole sets s.terms to the vectors received over links without a mask, and returns the
// agent's own posted vector.
func (s *State) receiveWhole(r *Round, k int, w LinkWeight) (own device.Vector) {
	s.terms = s.terms[:0]
	for i := range r.Links {
		if l := &r.Links[i]; l.Mask == nil && len(l.Received) > k {
			own = l.Sent[k] // the same on all such links
			s.terms = append(s.terms, device.Term{A: w(l), V: l.Received[k]})
		}
	}
	return own
}

// share returns the initial value of the sum of differences over s.terms. It is zero unless an
// agent receives from all others with equal weights. In that case all n agents share the sum T = Σ
// (first - x) over all agents, where first is the vector of the agent with the lowest number, and
//
//	S = w·T + w·n·(own - first)
//
// so that each agent reads two vectors instead of n; s.terms becomes that one difference. T is a
// sum of differences because a sum of the vectors themselves would have larger rounding errors.
func (s *State) share(r *Round, k int, own device.Vector) (start device.Term) {
	if r.Shared == nil || len(s.terms) != len(r.Links) || !equalFactors(s.terms) {
		return start
	}
	n, w := len(s.terms)+1, s.terms[0].A
	s.inOrder(r, own)
	first := s.terms[0].V
	start = device.Term{A: w, V: r.Shared(k, s.fill.diffs)}
	s.terms = append(s.terms[:0], device.Term{A: w * float64(n), V: first})
	return start
}

// inOrder inserts own among the received vectors, ordered by agent, and sets all factors to 1.
func (s *State) inOrder(r *Round, own device.Vector) {
	at := 0
	for i := range s.terms {
		s.terms[i].A = 1
		if r.Links[i].Peer < r.Self {
			at = i + 1
		}
	}
	s.terms = slices.Insert(s.terms, at, device.Term{A: 1, V: own})
}

func equalFactors(terms []device.Term) bool {
	return !slices.ContainsFunc(terms, func(t device.Term) bool { return t.A != terms[0].A })
}

// scaled stores c times the terms in the agent's reused operand list.
func (s *State) scaled(c float64, terms []device.Term) []device.Term {
	s.to = s.to[:0]
	for _, t := range terms {
		s.to = append(s.to, device.Term{A: c * t.A, V: t.V})
	}
	return s.to
}

// fillers compute shared vectors from terms or parts ordered by agent.
type fillers struct{ terms, diffs, mean, parts func(dst device.Vector) }

// sumTerms writes Σ A·V over the terms.
func (s *State) sumTerms(dst device.Vector) { s.do(device.Combine(dst, s.terms...)) }

// sumDiffs writes Σ A·(first - V) over the terms, first the V of the first of them.
func (s *State) sumDiffs(dst device.Vector) {
	s.to = append(s.to[:0], device.Term{A: 1, V: dst})
	s.do(device.Combine(dst), device.AddDiffs(device.Term{}, s.terms[0].V, s.terms[1:], s.to...))
}

// sumParts writes the sum of the parts.
func (s *State) sumParts(dst device.Vector) {
	s.do(device.Combine(dst))
	s.do(device.ScatterAdd(dst, s.parts...))
}

// addParts writes s.old and the parts added to it.
func (s *State) addParts(dst device.Vector) {
	s.copy(dst, s.old)
	s.do(device.ScatterAdd(dst, s.parts...))
}

// retain returns v, a received or shared vector, for the time after the iteration, and takes old in
// exchange, or copies v to it.
func (s *State) retain(r *Round, v, old device.Vector) device.Vector {
	if r.Retain != nil {
		return r.Retain(v, old)
	}
	s.copy(old, v)
	return old
}

// add adds sparse parts to dst, with the agent's reused operand list.
func (s *State) add(dst device.Vector, parts ...device.SparseTerm) {
	s.parts = append(s.parts[:0], parts...)
	s.do(device.ScatterAdd(dst, s.parts...))
}

// sentModel is the working memory of algorithms that move the model in Mix: the model that Local
// sent, with all its bits.
type sentModel struct {
	x    device.Vector
	base [1]device.Term // an operand list
}

func newSentModel() any { return &sentModel{} }
