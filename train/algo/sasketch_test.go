package algo

import (
	"math"
	"testing"

	"fspda/internal/rng"
)

// SA over low-rank sketches reaches the optimum that PowerGossip misses, on one matrix of rank above
// 1, with exact gradients and one random edge.
func TestSketchedSAReachesOptimum(t *testing.T) {
	w := world{seed: 5, n: 5, d: 12, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 4}}}
	s := rng.New(5, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	sketch := PowerGossip{Theta: 1, Tensors: []Tensor{{Rows: 3, Cols: 4}}, Draw: drawn(3)}
	far := func(a Algorithm, iterations int) float64 {
		g := w.play(a, q, 0.04, 0.005)
		g.connected(w.graph)
		for it := range iterations {
			g.step(t, it)
		}
		worst := 0.0
		for i := range w.n {
			worst = math.Max(worst, distance(g.x(i), q.optimum()))
		}
		return worst
	}
	dual, plain := far(SketchedSA{Gamma: 0.5, Beta: 1, PowerGossip: sketch}, 30000), far(sketch, 3000)
	t.Logf("%.3g from the optimum, PowerGossip %.3g", dual, plain)
	if !(dual < 1e-9) || plain < 0.05 {
		t.Errorf("%g from the optimum, PowerGossip %g", dual, plain)
	}
}
