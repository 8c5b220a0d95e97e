package algo

import "fspda/device"

// weight is the factor of a link's difference.
type weight func(l *Link) float64

func one(*Link) float64             { return 1 }
func fixed(l *Link) float64         { return l.Fixed }  // of the run's mixing matrix
func ofActiveGraph(l *Link) float64 { return l.Weight } // Metropolis weights of this iteration

// addDiffs adds A·S to each V of the terms, with S = Σ w·(own - other) over the links that were heard, of the k-th vector they carry.
// Whole vectors from several links are added up in one pass that reads each of them once, and S is rounded before it is spread.
func (s *State) addDiffs(r *Round, k int, w weight, to ...device.Term) {
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
	switch len(s.terms) {
	case 0:
	case 1:
		s.Dev.AddDiff(own, s.terms[0].V, nil, s.scaled(s.terms[0].A, to)...)
	default:
		s.Dev.AddDiffs(device.Term{}, own, s.terms, s.scaled(1, to)...)
	}
}

// scaled lists c times the terms in memory of the agent's own.
func (s *State) scaled(c float64, terms []device.Term) []device.Term {
	s.to = s.to[:0]
	for _, t := range terms {
		s.to = append(s.to, device.Term{A: c * t.A, V: t.V})
	}
	return s.to
}
