package dist

import (
	"fmt"
	"math"
	"testing"
)

// near reports whether two eigenvalues agree to a share of the larger.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Max(math.Abs(a), math.Abs(b)) }

// The formulas against the dense eigenvalues.
func TestExtremesByFormula(t *testing.T) {
	for _, kind := range graphKinds {
		for n := 3; n < 40 && kind.extremes != nil; n++ {
			spec := kind.Name
			g, err := ParseGraph(spec, n, 1)
			if err != nil { // not a power of 2
				continue
			}
			sp := g.Spectrum()
			second, largest, ok := g.formula()
			if !ok || !near(second, sp[1], 1e-9) || !near(largest, sp[n-1], 1e-9) {
				t.Errorf("%s of %d: %v and %v, want %v and %v", spec, n, second, largest, sp[1], sp[n-1])
			}
		}
	}
}

// The Lanczos method against the dense eigenvalues, on badly and well connected graphs, and with
// few or repeated eigenvalues.
func TestExtremesBySparseMatrix(t *testing.T) {
	for _, c := range []struct {
		spec string
		n    int
	}{{"path", 200}, {"ring", 301}, {"star", 50}, {"complete", 30}, {"er(0.05)", 200}, {"regular(3)", 300}, {"path",
		2}, {"path", 3}, {"er(0.5)", 9}} {
		g := parseGraph(t, c.spec, c.n)
		sp := g.Spectrum()
		if got := 1 / g.lanczos(g.solve); !near(got, sp[1], 1e-7) {
			t.Errorf("%s of %d: second smallest %v, want %v", c.spec, c.n, got, sp[1])
		}
		if got := g.lanczos(g.laplace); !near(got, sp[c.n-1], 1e-7) {
			t.Errorf("%s of %d: largest %v, want %v", c.spec, c.n, got, sp[c.n-1])
		}
	}
}

// Thousands of agents take a moment.
func TestExtremesOfMany(t *testing.T) {
	ring := parseGraph(t, "ring", 5000)
	custom, err := NewGraph(ring.N, ring.Edges)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := ring.Connectivity(), custom.Connectivity(); !near(a, b, 1e-6) {
		t.Errorf("connectivity by formula %v, by the matrix %v", a, b)
	}
	regular := parseGraph(t, "regular(4)", 2000)
	// the Alon-Boppana bound, for the largest eigenvalue
	if l := regular.LargestEigenvalue(); l < 4+2*math.Sqrt(3)-0.2 || l > 8 {
		t.Errorf("largest eigenvalue of a random regular graph: %v", l)
	}
}

func parseGraph(t testing.TB, spec string, n int) *Graph {
	t.Helper()
	g, err := ParseGraph(spec, n, 5)
	if err != nil {
		t.Fatal(fmt.Errorf("%s of %d: %w", spec, n, err))
	}
	return g
}
