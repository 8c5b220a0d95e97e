package dist

import (
	"slices"
	"testing"
)

// The last iteration of a round plays the round of the process, with its weights; the others have
// no edge.
func TestAtRoundEnds(t *testing.T) {
	g := mustGraph(t, "base(1)", 6)
	for _, spec := range []string{"base(1)", "matching", "one-edge"} {
		p := mustProcess(t, spec, g, 3)
		r := AtRoundEnds(p, 4)
		weighted := p.Weighted()
		ok := r.Weighted()
		if r.String() != spec || ok != weighted || r.Rate(0) != p.Rate(0)/4 {
			t.Errorf("%s became %s, weights %v, rate %v of %v", spec, r, ok, r.Rate(0), p.Rate(0))
		}
		for it := range 40 {
			got := r.Active(nil, it)
			if it%4 != 3 {
				if len(got) > 0 {
					t.Errorf("%s: events %v in iteration %d", spec, got, it)
				}
				continue
			}
			if want := p.Active(nil, it/4); !slices.Equal(got, want) {
				t.Errorf("%s: events %v in iteration %d, want %v", spec, got, it, want)
			}
			for _, e := range got {
				if ok && r.Weight(e, it) != p.Weight(e, it/4) {
					t.Errorf("%s: another weight in iteration %d", spec, it)
				}
			}
		}
	}
}
