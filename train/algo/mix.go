package algo

import (
	"slices"

	"fspda/device"
)

// Weight is the factor of a link's difference.
type Weight func(l *Link) float64

// Unit weighs all links alike.
func Unit(*Link) float64 { return 1 }

// FixedWeight is that of the run's fixed mixing matrix.
func FixedWeight(l *Link) float64 { return l.Fixed }

// ActiveWeight is the Metropolis weight of this iteration's active graph.
func ActiveWeight(l *Link) float64 { return l.Weight }

// AddDifferences adds A·S to each V of the terms, with S = Σ w·(own - other) over the links that were heard, of the k-th vector they carry.
// Whole vectors from several links are added up in one pass that reads each of them once, and S is rounded before it is spread.
func (s *State) AddDifferences(r *Round, k int, w Weight, to ...device.Term) {
	s.terms = s.terms[:0]
	var own device.Vector
	for i := range r.Links {
		l := &r.Links[i]
		switch {
		case len(l.Heard) <= k:
		case l.Mask == nil:
			own = l.Own[k] // the same over all such links
			s.terms = append(s.terms, device.Term{A: w(l), V: l.Heard[k]})
		default:
			s.Dev.AddDiff(l.Own[k], l.Heard[k], l.Mask, s.scaled(w(l), to)...)
		}
	}
	switch n := len(s.terms); {
	case n == 0:
	case n == 1:
		s.Dev.AddDiff(own, s.terms[0].V, nil, s.scaled(s.terms[0].A, to)...)
	case r.Common != nil && n == len(r.Links) && equalFactors(s.terms):
		s.addCommonDiffs(r, k, own, to)
	default:
		s.Dev.AddDiffs(device.Term{}, own, s.terms, s.scaled(1, to)...)
	}
}

// addCommonDiffs does what AddDifferences does where an agent hears all others and weighs them alike, with s.terms what was heard. All n agents
// then share the sum T = Σ (first - x) over all, first what the agent with the lowest number posted, and
//
//	S = w·T + w·n·(own - first)
//
// so that each reads two vectors and not n. It is made of differences, too: a sum of the vectors themselves would round as they do.
func (s *State) addCommonDiffs(r *Round, k int, own device.Vector, to []device.Term) {
	n, w := len(s.terms)+1, s.terms[0].A
	s.inOrder(r, own)
	first := s.terms[0].V
	sum := r.Common(k, s.fill.diffs)
	s.terms = append(s.terms[:0], device.Term{A: w * float64(n), V: first})
	s.Dev.AddDiffs(device.Term{A: w, V: sum}, own, s.terms, s.scaled(1, to)...)
}

// inOrder sets own among what was heard over all links, by the agents' numbers, and all factors to 1.
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
func (s *State) add(dst device.Vector, parts ...device.Part) {
	s.parts = append(s.parts[:0], parts...)
	s.Dev.ScatterAdd(dst, s.parts...)
}
