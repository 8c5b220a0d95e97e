package measure_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"fspda/bench/measure"
	"fspda/bench/measure/bare"
)

// With exchanges over a real stream, each kind is measured equally often and the numbers are
// consistent.
func TestBeside(t *testing.T) {
	swap, end, err := bare.GRPC().Open(t.Context(), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	gradients, swaps := 0, 0
	sum := 0.0
	r, err := measure.Overhead(t.Context(), measure.OverheadOptions{What: "a sum", Bytes: 100_000,
		Each: 30 * time.Millisecond, Gradient: func() error {
			gradients++
			for i := range 100_000 {
				sum += math.Sqrt(float64(i))
			}
			return nil
		}, Exchange: func() error { swaps++; return swap() }})
	if err != nil {
		t.Fatal(err)
	}
	if gradients != 1+3*r.Gradients || r.Gradients < 3 {
		t.Errorf("%d gradients were computed, the report counts %d of each kind", gradients, r.Gradients)
	}
	if want := float64(swaps-r.Gradients) / float64(r.Gradients); math.Abs(r.Exchanges-want) > 1e-9 {
		t.Errorf("%g exchanges per gradient, want %g", r.Exchanges, want)
	}
	if r.Baseline <= 0 || r.Exchange <= 0 || math.Abs(r.One/r.Baseline-1-r.OneSlower) > 1e-9 ||
		math.Abs(r.Continuous/r.Baseline-1-r.ContinuousSlower) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if table := r.String(); !strings.Contains(table, "one exchange with each") {
		t.Errorf("%s", table)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure.Overhead(stopped, measure.OverheadOptions{Each: time.Second,
		Gradient: func() error { return nil }, Exchange: swap}); err == nil {
		t.Error("no error for a cancelled measurement")
	}
	if _, err := measure.Overhead(t.Context(), measure.OverheadOptions{}); err == nil {
		t.Error("no error for a measurement of zero time")
	}
}
