package dist

import (
	"math"
	"strings"
	"testing"

	"fspda/internal/rng"

	"gonum.org/v1/gonum/mat"
)

func mustMixing(t testing.TB, spec string, g *Graph) *Mixing {
	t.Helper()
	w, err := ParseMixing(spec, g)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestGoldenMetropolis(t *testing.T) {
	for _, c := range golden {
		s := mustMixing(t, "metropolis", mustGraph(t, c.spec, c.n)).Spectrum()
		if math.Abs(s[c.n-2]-c.metropolis2) > 1e-4 || math.Abs(s[0]-c.least) > 1e-4 || math.Abs(s[c.n-1]-1) > 1e-9 {
			t.Errorf("%s of %d: eigenvalues %.5f ... %.5f, %.5f; want %v ... %v, 1", c.spec, c.n, s[0], s[c.n-2],
				s[c.n-1], c.least, c.metropolis2)
		}
	}
}

func TestGoldenLazyMetropolis(t *testing.T) {
	s := mustMixing(t, "lazy-metropolis", mustGraph(t, "er10-published", 10)).Spectrum()
	if math.Abs(s[8]-0.9310) > 1e-4 || math.Abs(s[0]-0.3898) > 1e-4 {
		t.Errorf("eigenvalues %.5f ... %.5f, want 0.3898 ... 0.9310", s[0], s[8])
	}
}

func TestMixingWeights(t *testing.T) {
	path := mustGraph(t, "path", 3)
	for _, c := range []struct {
		spec string
		g    *Graph
		want [3][3]float64
	}{
		{"metropolis", path, [3][3]float64{{2. / 3, 1. / 3, 0}, {1. / 3, 1. / 3, 1. / 3}, {0, 1. / 3, 2. / 3}}},
		{"half-lazy(metropolis)", path,
			[3][3]float64{{5. / 6, 1. / 6, 0}, {1. / 6, 4. / 6, 1. / 6}, {0, 1. / 6, 5. / 6}}},
		{"lazy-metropolis", path, [3][3]float64{{5. / 6, 1. / 6, 0}, {1. / 6, 4. / 6, 1. / 6}, {0, 1. / 6, 5. / 6}}},
		{"laplacian(0.25)", path, [3][3]float64{{0.75, 0.25, 0}, {0.25, 0.5, 0.25}, {0, 0.25, 0.75}}},
		{"laplacian(0.5)", path, [3][3]float64{{0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}}},
		{"uniform", mustGraph(t, "complete", 3), [3][3]float64{{1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3},
			{1. / 3, 1. / 3, 1. / 3}}},
	} {
		w := mustMixing(t, c.spec, c.g)
		if w.String() != c.spec {
			t.Errorf("%s is written %s", c.spec, w)
		}
		m := w.Matrix()
		for i := range 3 {
			for j := range 3 {
				if math.Abs(w.At(i, j)-c.want[i][j]) > 1e-15 || m.At(i, j) != w.At(i, j) {
					t.Errorf("%s: w(%d,%d) is %v, in the matrix %v; want %v", c.spec, i, j, w.At(i, j), m.At(i, j),
						c.want[i][j])
				}
			}
			if w.Self(i) != w.At(i, i) {
				t.Errorf("%s: Self(%d) is %v, not %v", c.spec, i, w.Self(i), w.At(i, i))
			}
		}
		for k, e := range c.g.Edges {
			if w.Edge(k) != w.At(e.J, e.I) {
				t.Errorf("%s: Edge(%d) is %v, not %v", c.spec, k, w.Edge(k), w.At(e.J, e.I))
			}
		}
	}
}

func TestMixingOfOneAgent(t *testing.T) {
	g := mustGraph(t, "complete", 1)
	for _, spec := range []string{"metropolis", "lazy-metropolis", "laplacian(0.1)", "uniform", "half-lazy(uniform)"} {
		if w := mustMixing(t, spec, g); w.Self(0) != 1 {
			t.Errorf("%s: without events, the own weight is %v", spec, w.Self(0))
		}
	}
}

func TestMixingErrors(t *testing.T) {
	ring := mustGraph(t, "ring", 6)
	for _, c := range []struct{ spec, want string }{
		{"metro", "lazy-metropolis"}, {"uniform", "not complete"}, {"laplacian", "write laplacian(theta)"},
		{"laplacian(nan)", "finite"}, {"laplacian(0.6)", "must not be negative"}, {"laplacian(-0.1)",
			"must not be negative"},
		{"laplacian(0)", "second largest eigenvalue is 1"}, {"metropolis(2)", "takes no argument"},
	} {
		if _, err := ParseMixing(c.spec, ring); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.spec, err, c.want)
		}
	}
}

func TestCheckMixing(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		w          []float64
		want       string
	}{
		{2, 2, []float64{0.5, 0.5, 0.5, 0.5}, ""},
		{1, 1, []float64{1}, ""},
		{1, 2, []float64{0.5, 0.5}, "not square"},
		{2, 2, []float64{0.5, 0.5, 0.4, 0.6}, "must be symmetric"},
		{2, 2, []float64{0.5, 0.5, 0.5, 0.5 + 1e-11}, "row 1 sums to"},
		{2, 2, []float64{1.5, -0.5, -0.5, 1.5}, "must not be negative"},
		{2, 2, []float64{0.5, math.NaN(), math.NaN(), 0.5}, "w(0,1) is NaN"},
		{2, 2, []float64{math.Inf(1), 0, 0, 1}, "w(0,0) is +Inf"},
		{2, 2, []float64{1, 0, 0, 1}, "second largest eigenvalue is 1"},
	} {
		err := CheckMixing(mat.NewDense(c.rows, c.cols, c.w))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.w, err, c.want)
		}
	}
}

// For any active edges, the weights preserve the mean: symmetric, rows that sum to 1, nothing
// negative.
func TestActiveMixing(t *testing.T) {
	const n = 9
	g := mustGraph(t, "complete", n)
	p, err := ParseProcess("k-edges(7)", g, 4)
	if err != nil {
		t.Fatal(err)
	}
	w := NewActiveMixing(mustProcess(t, "full", g, 1), n)
	s := rng.New(1, "test")
	var events []Event
	for round := range 200 {
		events = p.Active(events, round)
		w.Set(events, 0)
		x, mixed := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = s.Float64()
			mixed[i] = w.Self(i) * x[i]
			if !(w.Self(i) > 0) {
				t.Fatalf("round %d: Self(%d) = %v", round, i, w.Self(i))
			}
		}
		for k, e := range events {
			mixed[e.From] += w.Event(k) * x[e.To]
			mixed[e.To] += w.Event(k) * x[e.From]
		}
		before, after := 0.0, 0.0
		for i := range x {
			before += x[i]
			after += mixed[i]
			sum := w.Self(i)
			for k, e := range events {
				if _, ok := e.Peer(i); ok {
					sum += w.Event(k)
				}
			}
			if math.Abs(sum-1) > 1e-15*n {
				t.Fatalf("round %d: row %d sums to %v", round, i, sum)
			}
		}
		if math.Abs(before-after) > 1e-13 {
			t.Fatalf("round %d: the sum went from %v to %v", round, before, after)
		}
	}
}

func TestOneActiveEdgeIsPairAverage(t *testing.T) {
	w := NewActiveMixing(process{}, 5)
	w.Set([]Event{{Edge: 3, From: 4, To: 1}}, 0)
	if w.Event(0) != 0.5 || w.Self(1) != 0.5 || w.Self(4) != 0.5 || w.Self(0) != 1 {
		t.Errorf("weights %v on the edge, %v and %v at its ends, %v elsewhere", w.Event(0), w.Self(1), w.Self(4),
			w.Self(0))
	}
	events := []Event{{Edge: 0, From: 0, To: 1}, {Edge: 1, From: 0, To: 2}}
	if allocs := testing.AllocsPerRun(100, func() { w.Set(events, 0) }); allocs != 0 {
		t.Errorf("Set allocates %v times", allocs)
	}
}

// Self returns the weight of agent i's own vector: 1 if it has no active edge.
func (w *ActiveMixing) Self(i int) float64 {
	sum := 0.0
	for _, e := range w.events {
		if _, ok := e.Peer(i); ok {
			sum += w.weight(e)
		}
	}
	return 1 - sum
}
