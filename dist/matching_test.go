package dist

import (
	"math"
	"testing"
)

// No two edges share an agent, and the matching is maximal.
func TestMatchingIsMaximal(t *testing.T) {
	for _, spec := range []string{"er10-published", "star", "complete", "ring"} {
		g := mustGraph(t, spec, 10)
		p := mustProcess(t, "matching", g, 3)
		var events []Event
		for k := range 300 {
			events = p.Active(events, k)
			taken := make([]bool, g.N)
			for _, e := range events {
				if taken[e.From] || taken[e.To] {
					t.Fatalf("%s at %d: %v share an agent", spec, k, events)
				}
				taken[e.From], taken[e.To] = true, true
			}
			for _, e := range g.Edges {
				if !taken[e.I] && !taken[e.J] {
					t.Fatalf("%s at %d: %v could be added to %v", spec, k, e, events)
				}
			}
		}
	}
}

// On graphs with a single kind of edge the rate is known: on the complete graph of 10 every agent
// has one of its 9 edges, and on the star one edge of 9 is taken. On the path of 4 the middle edge
// is taken alone if it comes first, with probability 1/3.
func TestMatchingRate(t *testing.T) {
	for _, c := range []struct {
		spec string
		n    int
		want []float64
	}{
		{"complete", 10, nil},
		{"star", 10, nil},
		{"path", 4, []float64{2. / 3, 1. / 3, 2. / 3}},
	} {
		g := mustGraph(t, c.spec, c.n)
		p := mustProcess(t, "matching", g, 9)
		for k := range g.Edges {
			want := 1. / 9
			if c.want != nil {
				want = c.want[k]
			}
			if got := p.Rate(k); math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/16384) {
				t.Errorf("%s of %d: rate of edge %d is %.4f, want %.4f", c.spec, c.n, k, got, want)
			}
		}
	}
}
