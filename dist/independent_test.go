package dist

import (
	"math"
	"testing"
)

// Under k-edges-exact all sets of k edges are equally likely: 5 edges, 2 at a time, 10 sets.
func TestExactlyIsUniform(t *testing.T) {
	g := mustGraph(t, "ring", 5)
	p := mustProcess(t, "k-edges-exact(2)", g, 8)
	count := map[[2]int]int{}
	const rounds = 20000
	var events []Event
	for k := range rounds {
		events = p.Active(events, k)
		if len(events) != 2 {
			t.Fatalf("%d edges", len(events))
		}
		count[[2]int{events[0].Edge, events[1].Edge}]++
	}
	if len(count) != 10 {
		t.Fatalf("%d sets of 10", len(count))
	}
	for set, c := range count {
		if math.Abs(float64(c)-2000) > 5*math.Sqrt(2000*0.9) {
			t.Errorf("set %v came %d times, want about 2000", set, c)
		}
	}
}

// The number of edges of an iteration is binomial: mean np, variance np(1-p).
func TestIndependentCounts(t *testing.T) {
	g := mustGraph(t, "complete", 10)
	const rounds, n, p = 20000, 45, 0.2
	process := mustProcess(t, "k-edges(9)", g, 8)
	total, square := 0.0, 0.0
	var events []Event
	for k := range rounds {
		events = process.Active(events, k)
		for _, e := range events {
			if e.From > e.To {
				t.Fatalf("t=%d: %+v is not ordered by number", k, e)
			}
		}
		total += float64(len(events))
		square += float64(len(events)) * float64(len(events))
	}
	mean := total / rounds
	variance := square/rounds - mean*mean
	const want = n * p * (1 - p)
	if math.Abs(mean-n*p) > 5*math.Sqrt(want/rounds) || math.Abs(variance-want) > 5*want*math.Sqrt(2./rounds) {
		t.Errorf("mean %.3f, variance %.3f; want %v, %v", mean, variance, n*p, want)
	}
}
