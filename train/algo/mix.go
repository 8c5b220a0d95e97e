package algo

import "fspda/device"

// manyLinks is the number of links from which on differences add up in one vector before they are spread: a link then touches two
// vectors and not one for each target, which stay in the cache.
const manyLinks = 4

// addMixed adds A·S to each V of the terms, with S = Σ w·(own - other) over the links that were heard and w their fixed weights. It may use
// the gradient's vector.
func (s *State) addMixed(r *Round, to ...device.Term) { s.addSum(r, true, to) }

// addDiffs is addMixed with all weights 1.
func (s *State) addDiffs(r *Round, to ...device.Term) { s.addSum(r, false, to) }

// addSum is either of them.
func (s *State) addSum(r *Round, fixed bool, to []device.Term) {
	if len(r.Links) < manyLinks {
		s.addEach(r, fixed, to)
		return
	}
	s.Dev.Combine(s.g)
	s.addEach(r, fixed, []device.Term{{A: 1, V: s.g}})
	for _, t := range to {
		s.combine(t.V, device.Term{A: 1, V: t.V}, device.Term{A: t.A, V: s.g})
	}
}

// addEach adds the difference over each link to all targets.
func (s *State) addEach(r *Round, fixed bool, to []device.Term) {
	for i := range r.Links {
		l := &r.Links[i]
		if l.Heard == nil {
			continue
		}
		w := 1.0
		if fixed {
			w = l.Fixed
		}
		s.to = s.to[:0]
		for _, t := range to {
			s.to = append(s.to, device.Term{A: t.A * w, V: t.V})
		}
		s.Dev.AddDiff(l.Own[0], l.Heard[0], l.Mask, s.to...)
	}
}
