package algo

import (
	"fmt"
	"testing"
)

func TestGoldenKGT(t *testing.T) {
	g := wholeRing(KGT{K: 2, EtaS: 1}, every(2))
	golden(t, g, "1.4595596223 1.5912648410 1.5882004992", "1.5129638923 1.6778052699 1.6581929010")
	check(t, "c_0", g.aux(0, "c"), "-1.9347958348 -3.1481505892 -3.4250371242")
}

// The published rounds: K local steps, then z, c and x by whole matrix products.
func TestKGTIsItsRounds(t *testing.T) {
	const K, alpha = 4, 0.02
	for _, etaS := range []float64{1, 0.7} {
		t.Run(fmt.Sprint(etaS), func(t *testing.T) {
			forWorlds(t, func(t *testing.T, w world, q quadratics) {
				g := w.static(KGT{K: K, EtaS: etaS}, q, alpha, 0, every(K))
				g.grad = noisy(q, w.seed, 0.2)
				x, c := zeros(w.n, w.d), zeros(w.n, w.d)
				for round := range 40 {
					z, v := zeros(w.n, w.d), zeros(w.n, w.d)
					sum := make([]float64, w.d) // of the mean gradients in the round
					for i := range x {
						phi, gi := append([]float64(nil), x[i]...), make([]float64, w.d)
						for k := range K {
							g.grad(round*K+k, i, gi, phi)
							for j := range phi {
								phi[j] -= alpha * (gi[j] + c[i][j])
								sum[j] += gi[j] / float64(w.n)
							}
						}
						for j := range phi {
							z[i][j] = (x[i][j] - phi[j]) / (K * alpha)
							v[i][j] = x[i][j] - K*etaS*alpha*z[i][j]
						}
					}
					wz, before := mixed(w, z), mean(w.n, func(i int) []float64 { return x[i] })
					x = mixed(w, v)
					for i := range c {
						for j := range c[i] {
							c[i][j] += wz[i][j] - z[i][j]
						}
					}
					for k := range K {
						g.step(t, round*K+k)
					}
					for i := range x {
						if e := distance(x[i], g.x(i)); e > 1e-12 {
							t.Fatalf("round %d, agent %d: differ by %g", round, i, e)
						}
						if e := distance(c[i], g.aux(i, "c")); e > 1e-11 {
							t.Fatalf("round %d, correction of agent %d: differ by %g", round, i, e)
						}
					}
					for j := range before {
						before[j] -= etaS * alpha * sum[j]
					}
					if e := distance(before, mean(w.n, g.x)); e > 1e-12 {
						t.Fatalf("round %d: the mean is %g off", round, e)
					}
				}
			})
		})
	}
}

// mixed is W x with the Metropolis weights of the whole graph.
func mixed(w world, x [][]float64) [][]float64 { return mixedBy(w.graph, w.metropolis(), x) }

func mixedBy(edges [][2]int, weight func(i, j int) float64, x [][]float64) [][]float64 {
	out := zeros(len(x), len(x[0]))
	for i := range x {
		copy(out[i], x[i])
	}
	for _, e := range edges {
		for k := range x[0] {
			d := weight(e[0], e[1]) * (x[e[0]][k] - x[e[1]][k])
			out[e[0]][k] -= d
			out[e[1]][k] += d
		}
	}
	return out
}
