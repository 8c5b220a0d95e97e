package cuda

import (
	"context"
	"strings"
	"testing"

	"fspda/cuda/compiler"
	"fspda/internal/testing/fakegpu"
	"fspda/selftest"
)

// Every implementation that may be chosen is tried in every precision, and one that computes
// wrongly is named.
func TestEveryConvolutionCandidate(t *testing.T) {
	for _, precision := range compiler.Precisions() {
		m, _ := fakeBackend(t, fakegpu.Options{})
		n := newFakeDNN(m)
		n.rounding = precision != FP32
		d, err := open(backendWith(m, n), WithPrecision(precision))
		if err != nil {
			t.Fatal(err)
		}
		target := selftest.Target{Device: d, Precision: string(precision), Small: true}
		check := func() (good, bad int) {
			which := selftest.Selection{Only: "convolutions/"}
			_, err := target.Run(context.Background(), which, func(r selftest.Result) {
				idle := "1 cannot run" // an algorithm that there is not, and of dx an engine
				if strings.Contains(r.Name, "grad-x") {
					idle = "2 cannot run"
				}
				if r.Verdict == "ok" && strings.Contains(r.Saw, "implementations within") &&
					strings.Contains(r.Saw, idle) {
					good++
				} else if strings.Contains(r.Saw, "graph, engine 25 2=25: the result differs") {
					bad++
				} else {
					t.Errorf("%s: %v", precision, r)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return good, bad
		}
		if good, bad := check(); good != 6 || bad != 0 {
			t.Errorf("%s: %d checks pass, %d fail; want 6 and 0", precision, good, bad)
		}
		n.wrongEngine = 25
		if good, bad := check(); good != 0 || bad != 6 {
			t.Errorf("%s: with a wrong engine %d checks pass, %d fail; want 0 and 6", precision, good, bad)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if len(n.graph.Faults) > 0 {
			t.Errorf("%s: %s", precision, strings.Join(n.graph.Faults, "; "))
		}
	}
}
