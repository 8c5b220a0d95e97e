package algo

import (
	"slices"

	"fspda/device"
)

// Weight is the factor of a link's difference.
type LinkWeight func(l *Link) float64

// Unit weighs all links alike.
func UnitWeight(*Link) float64 { return 1 }

// FixedWeight is that of the run's fixed mixing matrix.
func FixedWeight(l *Link) float64 { return l.FixedWeight }

// ActiveWeight is the Metropolis weight of this iteration's active graph.
func ActiveWeight(l *Link) float64 { return l.ActiveWeight }

// AddDifferences adds A·S to each V of the terms, with S = Σ w·(own - other) over the links that
// were heard, of the k-th vector they carry. Whole vectors from several links are added up in one
// pass that reads each of them once, and S is rounded before it is spread.
func (s *State) AddDifferences(r *Round, k int, w LinkWeight, to ...device.Term) {
	s.addMasked(r, k, w, to)
	switch own := s.hearWhole(r, k, w); len(s.terms) {
	case 0:
	case 1:
		s.Dev.AddDiff(own, s.terms[0].V, nil, s.scaled(s.terms[0].A, to)...)
	default:
		start := s.share(r, k, own)
		s.Dev.AddDiffs(start, own, s.terms, s.scaled(1, to)...)
	}
}

// CombineDifferences is dst.V = Σ A·V over base and then AddDifferences with dst before the terms:
// to the bit, and where several links carry whole vectors in one pass. dst.V may be a vector of
// base and no other operand.
func (s *State) CombineDifferences(r *Round, k int, w LinkWeight, dst device.Term, base []device.Term, to ...device.Term) {
	s.base = append(s.base[:0], base...)
	own := s.hearWhole(r, k, w)
	if len(s.terms) < 2 || len(s.terms) < len(r.Links) && s.masked(r) {
		s.Dev.Combine(dst.V, s.base...)
		s.base = append(append(s.base[:0], dst), to...)
		s.AddDifferences(r, k, w, s.base...)
		return
	}
	start := s.share(r, k, own)
	s.Dev.CombineDiffs(dst, s.base, start, own, s.terms, s.scaled(1, to)...)
}

// masked tells whether a link carries some coordinates only.
func (s *State) masked(r *Round) bool {
	return slices.ContainsFunc(r.Links, func(l Link) bool { return l.Mask != nil })
}

// addMasked adds the differences on links that carry some coordinates, one after the other.
func (s *State) addMasked(r *Round, k int, w LinkWeight, to []device.Term) {
	for i := range r.Links {
		if l := &r.Links[i]; l.Mask != nil && len(l.Received) > k {
			s.Dev.AddDiff(l.Sent[k], l.Received[k], l.Mask, s.scaled(w(l), to)...)
		}
	}
}

// hearWhole makes s.terms what was heard over links that carry all coordinates, and returns what
// the agent posted there.
func (s *State) hearWhole(r *Round, k int, w LinkWeight) (own device.Vector) {
	s.terms = s.terms[:0]
	for i := range r.Links {
		if l := &r.Links[i]; l.Mask == nil && len(l.Received) > k {
			own = l.Sent[k] // the same over all such links
			s.terms = append(s.terms, device.Term{A: w(l), V: l.Received[k]})
		}
	}
	return own
}

// share returns with what the sum of differences over s.terms starts: nothing, but where an agent
// hears all others and weighs them alike. All n agents then share the sum T = Σ (first - x) over
// all, first what the agent with the lowest number posted, and
//
//	S = w·T + w·n·(own - first)
//
// so that each reads two vectors and not n; s.terms becomes that one difference. The sum is made of
// differences, too: a sum of the vectors themselves would round as they do.
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

// inOrder sets own among what was heard over all links, by the agents' numbers, and all factors to
// 1.
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
	for _, t := range terms {
		if t.A != terms[0].A {
			return false
		}
	}
	return true
}

// scaled lists c times the terms in memory of the agent's own.
func (s *State) scaled(c float64, terms []device.Term) []device.Term {
	s.to = s.to[:0]
	for _, t := range terms {
		s.to = append(s.to, device.Term{A: c * t.A, V: t.V})
	}
	return s.to
}

// fillers are what fills common vectors, from terms or parts of the order of the agents.
type fillers struct{ terms, diffs, parts func(dst device.Vector) }

// sumTerms writes Σ A·V over the terms.
func (s *State) sumTerms(dst device.Vector) { s.Dev.Combine(dst, s.terms...) }

// sumDiffs writes Σ A·(first - V) over the terms, first the V of the first of them.
func (s *State) sumDiffs(dst device.Vector) {
	s.Dev.Combine(dst)
	s.to = append(s.to[:0], device.Term{A: 1, V: dst})
	s.Dev.AddDiffs(device.Term{}, s.terms[0].V, s.terms[1:], s.to...)
}

// sumParts writes the sum of the parts.
func (s *State) sumParts(dst device.Vector) {
	s.Dev.Combine(dst)
	s.Dev.ScatterAdd(dst, s.parts...)
}

// add is Dev.ScatterAdd with its parts in memory of the agent's own.
func (s *State) add(dst device.Vector, parts ...device.SparseTerm) {
	s.parts = append(s.parts[:0], parts...)
	s.Dev.ScatterAdd(dst, s.parts...)
}

// sentModel is the working memory of algorithms that move the model in Mix: the model as it was
// sent in Local.
type sentModel struct{ x device.Vector }
