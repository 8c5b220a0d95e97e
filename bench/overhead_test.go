package bench

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
)

// Exchanges over a real stream beside a computation: each kind is measured as often, and the parts
// fit together.
func TestBeside(t *testing.T) {
	swap, end, err := BareGRPC().Open(t.Context(), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	gradients, swaps := 0, 0
	sum := 0.0
	r, err := MeasureOverhead(t.Context(), OverheadOptions{What: "a sum", Bytes: 100_000, Each: 30 * time.Millisecond,
		Gradient: func() error {
			gradients++
			for i := range 100_000 {
				sum += math.Sqrt(float64(i))
			}
			return nil
		},
		Exchange: func() error { swaps++; return swap() }})
	if err != nil {
		t.Fatal(err)
	}
	if gradients != 1+3*r.Gradients || r.Gradients < 3 {
		t.Errorf("%d gradients, of which %d of each kind were counted", gradients, r.Gradients)
	}
	if want := float64(swaps-r.Gradients) / float64(r.Gradients); math.Abs(r.Exchanges-want) > 1e-9 {
		t.Errorf("%g exchanges in the time of a gradient, there were %g", r.Exchanges, want)
	}
	if r.Baseline <= 0 || r.Exchange <= 0 || math.Abs(r.One/r.Baseline-1-r.OneSlower) > 1e-9 ||
		math.Abs(r.Continuous/r.Baseline-1-r.ContinuousSlower) > 1e-9 {
		t.Errorf("%+v", r)
	}
	var table strings.Builder
	if _, err := r.WriteTo(&table); err != nil || !strings.Contains(table.String(), "one exchange with each") {
		t.Errorf("%v\n%s", err, table.String())
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureOverhead(stopped, OverheadOptions{Each: time.Second, Gradient: func() error { return nil },
		Exchange: swap}); err == nil {
		t.Error("a measurement that was stopped is complete")
	}
	if _, err := MeasureOverhead(t.Context(), OverheadOptions{}); err == nil {
		t.Error("no time is enough")
	}
}
