package algo

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// Bounds are for float64. Each property is tested on two random graphs, objectives and masks, and
// with FSPDA_LONG=1 on four more.
var worlds = func() int {
	if os.Getenv("FSPDA_LONG") != "" {
		return 6
	}
	return 2
}()

// forWorlds tests a property on random worlds, sparse and dense, with one edge and with many.
func forWorlds(t *testing.T, f func(t *testing.T, w world, q quadratics)) {
	for seed := range uint64(worlds) {
		for _, k := range []int{0, 2} {
			w := randomWorld(seed, k)
			w.many = seed%2 == 1
			s := rng.New(seed, "quadratics", uint64(k))
			q := randomQuadratics(&s, w.n, w.d)
			t.Run(fmt.Sprintf("seed=%d/k=%d", seed, k), func(t *testing.T) { f(t, w, q) })
		}
	}
}

// The mean of x moves by -alpha times the mean direction, for every graph, mask and gain.
func TestMeanRecursion(t *testing.T) {
	for _, a := range []Algorithm{SA{Gamma: 0.3, Beta: 1}, SA{Gamma: 0.3, Beta: 0.5, Descent: heavyBall(0.9)},
		DSGD{Theta: 0.3}, DSGD{Theta: 0.3, Descent: heavyBall(0.5)}, DSGD{Metropolis: true}} {
		t.Run(fmt.Sprintf("%+v", a), func(t *testing.T) {
			forWorlds(t, func(t *testing.T, w world, q quadratics) {
				g := w.play(a, q, 0.02, 0.01)
				u := make([][]float64, w.n)
				for i := range u {
					u[i] = make([]float64, w.d)
				}
				mu := momentumOf(a)
				gi := make([]float64, w.d)
				for it := range 200 {
					before := mean(w.n, g.x)
					for i := range u {
						q.grad(it, i, gi, g.x(i))
						for k := range gi {
							u[i][k] = mu*u[i][k] + gi[k]
						}
					}
					ubar := mean(w.n, func(i int) []float64 { return u[i] })
					g.step(t, it)
					for k := range before {
						before[k] -= 0.02 * ubar[k]
					}
					if e := distance(before, mean(w.n, g.x)); e > 1e-12 {
						t.Fatalf("iteration %d: the mean is %g off", it, e)
					}
				}
			})
		})
	}
}

// Both ends of an edge add exact negatives: the duals sum to zero.
func TestDualsSumToZero(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.play(SA{Gamma: 0.3, Beta: 1, Descent: heavyBall(0.5)}, q, 0.02, 0.01)
		for it := range 2000 {
			g.step(t, it)
		}
		sum := mean(w.n, func(i int) []float64 { return g.aux(i, "lambda") })
		if e := distance(sum, make([]float64, w.d)) * float64(w.n); e > 1e-11 {
			t.Errorf("|sum of lambda| = %g", e)
		}
	})
}

// Without duals FSPDA-SA is DSGD.
func TestSAWithoutDualIsDSGD(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		a := w.play(SA{Gamma: 0.3, Beta: 1, Descent: heavyBall(0.4)}, q, 0.02, 0)
		b := w.play(DSGD{Theta: 0.3, Descent: heavyBall(0.4)}, q, 0.02, 0)
		for it := range 400 {
			a.step(t, it)
			b.step(t, it)
		}
		for i := range w.n {
			if e := distance(a.x(i), b.x(i)); e > 1e-12 {
				t.Errorf("agent %d: differ by %g", i, e)
			}
		}
	})
}

// Combine-then-adapt and adapt-then-combine are the same sequence, observed after W(x - alpha·g) or
// after W(x) - alpha·g.
func TestATC(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.play(DSGD{Theta: 0.3, ATC: true}, q, 0.05, 0)
		x := make([][]float64, w.n) // the reference implementation
		for i := range x {
			x[i] = make([]float64, w.d)
		}
		gi := make([]float64, w.d)
		for it := range 200 {
			y := make([][]float64, w.n)
			for i := range x {
				q.grad(it, i, gi, x[i])
				y[i] = append([]float64(nil), x[i]...)
				for k := range gi {
					y[i][k] -= 0.05 * gi[k]
				}
				x[i] = append([]float64(nil), y[i]...)
			}
			for _, e := range w.edges(it) {
				for k := range w.d {
					if c := w.mask(it, e[0], e[1]); c != nil && !slices.Contains(c, uint32(k)) {
						continue
					}
					d := y[e[0]][k] - y[e[1]][k]
					x[e[0]][k] -= 0.3 * d
					x[e[1]][k] += 0.3 * d
				}
			}
			g.step(t, it)
			for i := range x {
				if e := distance(x[i], g.x(i)); e > 1e-12 {
					t.Fatalf("iteration %d, agent %d: differ by %g", it, i, e)
				}
			}
		}
	})
}

// On a static graph without masks, with exact gradients, FSPDA-SA is EXTRA with W = I - gamma·L and
// W~ = I - (gamma - eta·beta)·L (equation 11).
func TestSAIsEXTRA(t *testing.T) {
	for seed := range uint64(worlds) {
		w := randomWorld(seed, 0)
		s := rng.New(seed, "quadratics")
		q := randomQuadratics(&s, w.n, w.d)
		const alpha, gamma, eta, beta = 0.02, 0.1, 0.05, 1.0
		g := w.play(SA{Gamma: gamma, Beta: beta}, q, alpha, eta)
		g.edges = func(int) [][2]int { return w.graph }
		prev, cur := zeros(w.n, w.d), zeros(w.n, w.d) // x^{t-1}, x^t of EXTRA
		for it := range 500 {
			next := zeros(w.n, w.d)
			lc, lp := laplacian(w.graph, cur), laplacian(w.graph, prev)
			gc, gp := make([]float64, w.d), make([]float64, w.d)
			for i := range next {
				q.grad(it, i, gc, cur[i])
				q.grad(it, i, gp, prev[i])
				for k := range next[i] {
					if it == 0 {
						next[i][k] = cur[i][k] - gamma*lc[i][k] - alpha*gc[k]
						continue
					}
					next[i][k] = 2*cur[i][k] - gamma*lc[i][k] - (prev[i][k] - (gamma-eta*beta)*lp[i][k]) -
						alpha*(gc[k]-gp[k])
				}
			}
			prev, cur = cur, next
			g.step(t, it)
			for i := range cur {
				if e := distance(cur[i], g.x(i)); e > 1e-11 {
					t.Fatalf("seed %d, iteration %d, agent %d: %g from EXTRA", seed, it, i, e)
				}
			}
		}
	}
}

func zeros(n, d int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, d)
	}
	return m
}

func laplacian(edges [][2]int, x [][]float64) [][]float64 {
	l := zeros(len(x), len(x[0]))
	for _, e := range edges {
		for k := range x[0] {
			d := x[e[0]][k] - x[e[1]][k]
			l[e[0]][k] += d
			l[e[1]][k] -= d
		}
	}
	return l
}

// The recursion of equation 11, x^{t+2} = (2I - gamma·L_{t+1})x^{t+1} - (I -
// (gamma-eta·beta)·L_t)x^t - alpha(g^{t+1}-g^t), with masks and one edge.
func TestTwoStepForm(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		const alpha, gamma, eta, beta = 0.02, 0.4, 0.03, 0.7
		g := w.play(SA{Gamma: gamma, Beta: beta}, q, alpha, eta)
		copyX := func() [][]float64 {
			x := make([][]float64, w.n)
			for i := range x {
				x[i] = append([]float64(nil), g.x(i)...)
			}
			return x
		}
		x0 := copyX()
		g.step(t, 0)
		x1 := copyX()
		for it := range 300 {
			g.step(t, it+1)
			x2 := copyX()
			l0, l1 := maskedLaplacian(w, it, x0), maskedLaplacian(w, it+1, x1)
			g0, g1 := make([]float64, w.d), make([]float64, w.d)
			for i := range x2 {
				q.grad(it, i, g0, x0[i])
				q.grad(it+1, i, g1, x1[i])
				for k := range x2[i] {
					want := 2*x1[i][k] - gamma*l1[i][k] - (x0[i][k] - (gamma-eta*beta)*l0[i][k]) - alpha*(g1[k]-g0[k])
					if math.Abs(want-x2[i][k]) > 1e-12 {
						t.Fatalf("iteration %d, agent %d: %g off", it, i, want-x2[i][k])
					}
				}
			}
			x0, x1 = x1, x2
		}
	})
}

// With exact gradients, one random edge and random masks, FSPDA-SA reaches the optimum, and its
// duals the scaled gradient differences, also with momentum.
func TestSAReachesOptimum(t *testing.T) {
	for _, c := range []struct {
		mu, alpha, eta float64
	}{{0, 0.05, 0.02}, {0.5, 0.03, 0.03}} {
		for _, k := range []int{0, 3} {
			w := world{seed: 5, n: 4, d: 6, k: k, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}}}
			s := rng.New(5, "quadratics")
			q := randomQuadratics(&s, w.n, w.d)
			g := w.play(SA{Gamma: 0.5, Beta: 1, Descent: heavyBall(c.mu)}, q, c.alpha, c.eta)
			best := q.optimum()
			for it := 0; it < 60000 && (it%1000 != 0 || g.far(best) > 1e-13); it++ {
				g.step(t, it)
			}
			gi := make([]float64, w.d)
			for i := range w.n {
				if e := distance(g.x(i), best); e > 1e-10 {
					t.Errorf("mu %v, k %d: agent %d ends %g from the optimum", c.mu, k, i, e)
				}
				q.grad(0, i, gi, best)
				for j := range gi { // the full gradient is zero there
					gi[j] *= -c.alpha / ((1 - c.mu) * c.eta)
				}
				if e := distance(g.aux(i, "lambda"), gi); e > 1e-10*(1+distance(gi, make([]float64, w.d))) {
					t.Errorf("mu %v, k %d: dual of agent %d ends %g from its limit", c.mu, k, i, e)
				}
			}
		}
	}
}

// With equal objectives the duals stay zero and all agents follow plain gradient descent.
func TestSAEqualObjectives(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		for i := range q.h {
			q.h[i], q.b[i] = q.h[0], q.b[0]
		}
		g := w.play(SA{Gamma: 0.5, Beta: 1}, q, 0.1, 0.1)
		x, gi := make([]float64, w.d), make([]float64, w.d)
		for it := range 200 {
			q.grad(it, 0, gi, x)
			for k := range x {
				x[k] -= float64(0.1 * gi[k])
			}
			g.step(t, it)
			for i := range w.n {
				if distance(x, g.x(i)) != 0 || distance(g.aux(i, "lambda"), make([]float64, w.d)) != 0 {
					t.Fatalf("iteration %d: agent %d left the common path", it, i)
				}
			}
		}
	})
}

// DSGD has a bias proportional to a small alpha: halving alpha about halves the consensus error and
// the offset of the mean.
func TestDSGDBias(t *testing.T) {
	w := world{seed: 7, n: 5, d: 6, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}}}
	s := rng.New(7, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	bias := func(alpha float64) (gap, offset float64) {
		g := w.play(DSGD{Theta: 0.2}, q, alpha, 0)
		g.edges = func(int) [][2]int { return w.graph }
		for it := range 5000 {
			g.step(t, it)
		}
		m := mean(w.n, g.x)
		for i := range w.n {
			gap += distance(g.x(i), m) * distance(g.x(i), m)
		}
		return math.Sqrt(gap), distance(m, q.optimum())
	}
	checkBias(t, bias)
}

// checkBias: half the alpha about halves the consensus error and the offset of the mean.
func checkBias(t *testing.T, bias func(alpha float64) (gap, offset float64)) {
	t.Helper()
	gap1, off1 := bias(0.02)
	gap2, off2 := bias(0.01)
	if r := gap1 / gap2; r < 1.6 || r > 2.2 {
		t.Errorf("consensus error %g and %g: ratio %g", gap1, gap2, r)
	}
	if r := off1 / off2; r < 1.6 || r > 2.2 {
		t.Errorf("offset of the mean %g and %g: ratio %g", off1, off2, r)
	}
	if off2 < 1e-4 {
		t.Errorf("offset %g: there should be one", off2)
	}
}

// The sign printed in equation 8b, beta·(other - own), diverges. This guards against "fixing" the
// sign.
func TestPrintedSignDiverges(t *testing.T) {
	for seed := range uint64(worlds) {
		w := randomWorld(seed, 3)
		s := rng.New(seed, "quadratics")
		q := randomQuadratics(&s, w.n, w.d)
		g := w.play(SA{Gamma: 0.4, Beta: -1}, q, 0.1, 0.05)
		largest := 0.0
		for it := 0; it < 4000 && largest <= 1e6; it++ {
			g.step(t, it)
			for i := range w.n {
				largest = math.Max(largest, distance(g.x(i), make([]float64, w.d)))
			}
		}
		if largest <= 1e6 {
			t.Errorf("seed %d: |x| = %g after 4000 iterations", seed, largest)
		}
	}
}

// The stability condition of the deterministic modes agrees with the roots of z² - (2-gamma·l)z +
// (1-gamma·l+eta·beta·l), and with SA itself on two agents without curvature, where l = 2.
func TestStabilityPredicate(t *testing.T) {
	radius := func(gamma, dual, l float64) float64 {
		b, c := -(2 - gamma*l), 1-gamma*l+dual*l
		disc := b*b - 4*c
		if disc < 0 {
			return math.Sqrt(c)
		}
		return math.Max(math.Abs(-b+math.Sqrt(disc)), math.Abs(-b-math.Sqrt(disc))) / 2
	}
	q := quadratics{h: [][]float64{{0}, {0}}, b: [][]float64{{0}, {0}}}
	for gi := 1; gi < 60; gi++ {
		for di := 1; di < 60; di++ {
			gamma, dual, l := float64(gi)/30, float64(di)/31, 2.0
			stable := dual < gamma && gamma*l < 2+dual*l/2
			if r := radius(gamma, dual, l); math.Abs(r-1) > 1e-9 && (r < 1) != stable {
				t.Fatalf("gamma %g, eta·beta %g: predicate %v, radius %g", gamma, dual, stable, r)
			} else if math.Abs(r-1) < 0.02 || gi%6 != 0 || di%6 != 0 {
				continue
			}
			g := newGame(SA{Gamma: gamma, Beta: 1}, 2, []float64{0})
			g.alpha, g.eta, g.grad = 0, dual, q.grad
			g.edges = func(int) [][2]int { return [][2]int{{0, 1}} }
			g.x(0)[0], g.x(1)[0] = 1, -1
			for it := range 1000 {
				g.step(t, it)
			}
			if gap := math.Abs(g.x(0)[0] - g.x(1)[0]); stable != (gap < 1e-3) {
				t.Errorf("gamma %g, eta·beta %g: predicate %v, gap %g", gamma, dual, stable, gap)
			}
		}
	}
}
