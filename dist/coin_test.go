package dist

import (
	"math"
	"testing"
)

// A coin activates all edges or none, at its rate.
func TestCoin(t *testing.T) {
	g, err := ParseGraph("ring", 6, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseProcess(" coin( 0.3 ) ", g, 7)
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != "coin(0.3)" || p.Rate(2) != 0.3 {
		t.Errorf("%s at rate %v", p, p.Rate(2))
	}
	const T = 20000
	var events []Event
	woke := 0
	for it := range T {
		events = p.Active(events, it)
		if len(events) != 0 && len(events) != len(g.Edges) {
			t.Fatalf("iteration %d: %d of %d edges", it, len(events), len(g.Edges))
		}
		if len(events) > 0 {
			woke++
		}
	}
	if got, err := float64(woke)/T, math.Sqrt(0.3*0.7/T); math.Abs(got-0.3) > 4*err {
		t.Errorf("active at a share of %v of the iterations, want 0.3 within %v", got, 4*err)
	}
	for _, spec := range []string{"coin", "coin(0)", "coin(1.5)", "coin(x)"} {
		if _, err := ParseProcess(spec, g, 7); err == nil {
			t.Errorf("%s was accepted", spec)
		}
	}
}
