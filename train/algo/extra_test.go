package algo

import "testing"

func TestGoldenEXTRA(t *testing.T) {
	golden(t, wholeRing(EXTRA{Delta: 0.5}, always), "1.5887692960 1.6525105499 1.6543803204",
		"1.3942451665 1.6361873781 1.6516321195")
}

// The published two-step recursion, for W~ from W to (I+W)/2.
func TestEXTRAIsItsRecursion(t *testing.T) {
	const alpha = 0.02
	for _, delta := range []float64{0.5, 0.2} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			g := w.static(EXTRA{Delta: delta}, q, alpha, 0, always)
			prev, cur := zeros(w.n, w.d), zeros(w.n, w.d) // x^{t-1}, x^t
			gp, gc := make([]float64, w.d), make([]float64, w.d)
			for it := range 500 {
				next, wc, wp := zeros(w.n, w.d), mixed(w, cur), mixed(w, prev)
				for i := range next {
					q.grad(it, i, gc, cur[i])
					q.grad(it, i, gp, prev[i])
					for k := range next[i] {
						if next[i][k] = wc[i][k] - alpha*gc[k]; it > 0 {
							tilde := wp[i][k] + delta*(prev[i][k]-wp[i][k])
							next[i][k] = cur[i][k] + wc[i][k] - tilde - alpha*(gc[k]-gp[k])
						}
					}
				}
				prev, cur = cur, next
				g.step(t, it)
				for i := range cur {
					if e := distance(cur[i], g.x(i)); e > 1e-11 {
						t.Fatalf("iteration %d, agent %d: differ by %g", it, i, e)
					}
				}
			}
		})
	}
}

// On a static graph without masks FSPDA-SA is EXTRA with W = I - gamma·L and Delta =
// eta·beta/gamma.
func TestSAIsTheAlgorithmEXTRA(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		const alpha, gamma, eta, beta = 0.02, 0.1, 0.05, 0.8
		a, b := w.static(SA{Gamma: gamma, Beta: beta}, q, alpha, eta,
			always), w.static(EXTRA{Delta: eta * beta / gamma}, q, alpha, 0, always)
		b.fixed = func(int, int) float64 { return gamma }
		for it := range 500 {
			a.step(t, it)
			b.step(t, it)
		}
		for i := range w.n {
			if e := distance(a.x(i), b.x(i)); e > 1e-11 {
				t.Errorf("agent %d: differ by %g", i, e)
			}
		}
	})
}
