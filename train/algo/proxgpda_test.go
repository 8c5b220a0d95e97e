package algo

import (
	"errors"
	"slices"
	"testing"

	"fspda/device/devicetest"
)

func TestGoldenProxGPDA(t *testing.T) {
	const rho = 2
	g := wholeRing(ProxGPDA{Rho: rho}, always)
	golden(t, g, "1.7972850674 1.9565530198 1.9736290175", "1.6450847927 1.9201303960 1.9444857556")
	// the dual of iteration 5, whose last step is delayed
	lambda := slices.Clone(g.aux(0, "lambda"))
	for k := range lambda {
		lambda[k] += rho * (2*g.x(0)[k] - g.x(1)[k] - g.x(3)[k])
	}
	check(t, "lambda_0", lambda, "-1.8995736858 -3.3308436306 -3.4535245838")
}

// The step minimizes its definition: linearized objective, dual, penalty, and the signless proximal
// term (rho/2)·Σ_{ij} |x_i + x_j - x_i^t - x_j^t|². In each coordinate the derivative at x^{t+1} is
// zero.
func TestProxGPDAIsAnArgmin(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		const rho = 1.5
		g := w.static(ProxGPDA{Rho: rho}, q, 0, 0, always)
		lambda := zeros(w.n, w.d)
		gi := make([]float64, w.d)
		for it := range 100 {
			x := copyModels(w, g)
			g.step(t, it)
			next := copyModels(w, g)
			ln := laplacian(w.graph, next)
			for i := range x {
				q.grad(it, i, gi, x[i])
				for k := range gi {
					slope := gi[k] + lambda[i][k] + rho*ln[i][k]
					for _, e := range w.graph {
						if e[0] == i || e[1] == i {
							slope += rho * (next[e[0]][k] + next[e[1]][k] - x[e[0]][k] - x[e[1]][k])
						}
					}
					if slope > 1e-11 || slope < -1e-11 {
						t.Fatalf("iteration %d, agent %d: the slope at the minimum is %g", it, i, slope)
					}
				}
			}
			for i := range lambda {
				for k := range lambda[i] {
					lambda[i][k] += rho * ln[i][k]
				}
			}
		}
	})
}

// An agent without an edge has no step size.
func TestProxGPDAAlone(t *testing.T) {
	dev := devicetest.NewFloat64()
	a := ProxGPDA{Rho: 1}
	var lonely *NoEdgeError
	if err := a.Local(NewState(a, dev, dev.NewVector(2)), &Round{Self: 3, T: 7}); !errors.As(err, &lonely) ||
		lonely.Self != 3 || lonely.T != 7 {
		t.Errorf("error %v", err)
	}
}
