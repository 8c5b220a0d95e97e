package dist

import (
	"math"
	"testing"
)

// The rates of one-edge-round-robin sum to one edge per iteration.
func TestRoundRobinRatesSumToOne(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	p := mustProcess(t, "one-edge-round-robin", g, 1)
	sum := 0.0
	for k := range g.Edges {
		sum += p.Rate(k)
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the rates sum to %v", sum)
	}
}

// The initiator is the agent whose turn it is, or either end with the same probability.
func TestInitiators(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	robin, one := mustProcess(t, "one-edge-round-robin", g, 3), mustProcess(t, "one-edge", g, 3)
	lower := 0
	const rounds = 10000
	for k := range rounds {
		if e := robin.Active(nil, k); len(e) != 1 || e[0].From != k%10 {
			t.Fatalf("round robin at %d: %v", k, e)
		}
		if e := one.Active(nil, k); len(e) != 1 {
			t.Fatalf("one edge at %d: %v", k, e)
		} else if e[0].From < e[0].To {
			lower++
		}
	}
	if math.Abs(float64(lower)-rounds/2) > 5*math.Sqrt(rounds)/2 {
		t.Errorf("the lower end initiates %d times of %d", lower, rounds)
	}
}
