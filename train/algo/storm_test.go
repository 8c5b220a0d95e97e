package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// lambda returns lambda = ahead - kappa·ml of agent i.
func (a STORM) lambda(g *game, i int) []float64 {
	l := slices.Clone(g.aux(i, "ahead"))
	for k, ml := range g.aux(i, "ml") {
		l[k] -= a.kappa() * ml
	}
	return l
}

func TestGoldenSTORM(t *testing.T) {
	a := STORM{Gamma: 0.4, Beta: 1, AX: 0.3, ALambda: 0.2}
	g := goldenGame(a)
	golden(t, g, "0.9456147377 1.1116967649 0.4122600931", "2.0123561286 1.4683659770 1.8818750496")
	check(t, "lambda_0", a.lambda(g, 0), "-1.1103146800 -1.8253994290 -0.8844327360")
}

// noisy adds noise to each agent's gradient. It depends on agent and iteration alone, so both
// points of one iteration get the same noise.
func noisy(q quadratics, seed uint64, std float64) func(t, i int, dst, x []float64) {
	return func(t, i int, dst, x []float64) {
		q.grad(t, i, dst, x)
		s := rng.New(seed, "noise", uint64(t), uint64(i))
		for k := range dst {
			dst[k] *= 1 + std*s.Norm()
			dst[k] += std * s.Norm()
		}
	}
}

// With a_x = a_lambda = 1 STORM is SA, on the same samples.
func TestSTORMOfOneIsSA(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		a, b := w.play(STORM{Gamma: 0.3, Beta: 0.7, AX: 1, ALambda: 1}, q, 0.02,
			0.01), w.play(SA{Gamma: 0.3, Beta: 0.7}, q, 0.02, 0.01)
		a.grad, b.grad = noisy(q, w.seed, 0.2), noisy(q, w.seed, 0.2)
		for it := range 1000 {
			a.step(t, it)
			b.step(t, it)
		}
		for i := range w.n {
			if e := distance(a.x(i), b.x(i)); e > 1e-12 {
				t.Errorf("agent %d: differ by %g", i, e)
			}
			if e := distance(a.aux(i, "ahead"), b.aux(i, "lambda")); e > 1e-12 {
				t.Errorf("duals of agent %d: differ by %g", i, e)
			}
		}
	})
}

// The recursion of the paper's appendix agrees with the form that splits m, with the lambda term
// outside the momentum and, as in the released program, inside.
func TestSTORMIsItsAppendix(t *testing.T) {
	const alpha, eta, gamma, beta = 0.02, 0.01, 0.3, 0.7
	for _, a := range []STORM{{AX: 0.3, ALambda: 0.2}, {AX: 0.25, ALambda: 0.25}, {AX: 0.1, ALambda: 0.6, Lagged: true},
		{AX: 0.3, ALambda: 0.3, Lagged: true}} {
		a.Gamma, a.Beta = gamma, beta
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			g := w.play(a, q, alpha, eta)
			g.grad = noisy(q, w.seed, 0.2)
			x, prev, lam, old, m, ml := zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n,
				w.d), zeros(w.n, w.d)
			for it := range 300 {
				lag := old // the lambda that the old gradient has
				if a.Lagged {
					lag = lam
				}
				now, then := lagrangian(w, g.grad, it, x, lam, alpha, eta, gamma), lagrangian(w, g.grad, it, prev, lag,
					alpha, eta, gamma)
				d, e := maskedLaplacian(w, it, x), maskedLaplacian(w, it, prev)
				for i := range x {
					for k := range x[i] {
						if it == 0 {
							m[i][k], ml[i][k] = now[i][k], d[i][k]
						} else {
							m[i][k] = now[i][k] + (1-a.AX)*(m[i][k]-then[i][k])
							ml[i][k] = d[i][k] + (1-a.ALambda)*(ml[i][k]-e[i][k])
						}
						prev[i][k], old[i][k] = x[i][k], lam[i][k]
						x[i][k] -= alpha * m[i][k]
						lam[i][k] += beta * ml[i][k]
					}
				}
				g.step(t, it)
				for i := range x {
					if e := distance(lam[i], a.lambda(g, i)); e > 1e-12 {
						t.Fatalf("%+v, iteration %d, agent %d: lambda is %g from the appendix", a, it, i, e)
					}
					if e := distance(x[i], g.x(i)); e > 1e-12 {
						t.Fatalf("%+v, iteration %d, agent %d: %g from the appendix", a, it, i, e)
					}
				}
			}
		})
	}
}

// lagrangian is the gradient of the augmented Lagrangian with this iteration's samples, edges and
// masks.
func lagrangian(w world, grad func(t, i int, dst, x []float64), it int, x, lam [][]float64, alpha, eta,
	gamma float64) [][]float64 {
	out := maskedLaplacian(w, it, x)
	gi := make([]float64, w.d)
	for i := range out {
		grad(it, i, gi, x[i])
		for k := range gi {
			out[i][k] = gi[k] + eta/alpha*lam[i][k] + gamma/alpha*out[i][k]
		}
	}
	return out
}

func maskedLaplacian(w world, it int, x [][]float64) [][]float64 {
	l := zeros(w.n, w.d)
	for _, e := range w.edges(it) {
		c := w.mask(it, e[0], e[1])
		for k := range w.d {
			if c == nil || slices.Contains(c, uint32(k)) {
				d := x[e[0]][k] - x[e[1]][k]
				l[e[0]][k] += d
				l[e[1]][k] -= d
			}
		}
	}
	return l
}

// The mean of mg is STORM of the mean gradient, without a graph, and moves the mean model; lambda
// and ml sum to zero.
func TestSTORMMeans(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		a := STORM{Gamma: 0.3, Beta: 0.7, AX: 0.1, ALambda: 0.2}
		g := w.play(a, q, 0.02, 0.01)
		g.grad = noisy(q, w.seed, 0.3)
		meanGrad := func(it int, x [][]float64) []float64 {
			return mean(w.n, func(i int) []float64 { gi := make([]float64, w.d); g.grad(it, i, gi, x[i]); return gi })
		}
		x, prev := copyModels(w, g), [][]float64(nil)
		want := make([]float64, w.d)
		for it := range 300 {
			now := meanGrad(it, x)
			for k := range want {
				if it == 0 {
					want[k] = now[k]
				}
			}
			if it > 0 {
				then := meanGrad(it, prev)
				for k := range want {
					want[k] = now[k] + 0.9*(want[k]-then[k])
				}
			}
			before := mean(w.n, g.x)
			g.step(t, it)
			if e := distance(want, mean(w.n, func(i int) []float64 { return g.aux(i, "mg") })); e > 1e-12 {
				t.Fatalf("iteration %d: the mean of mg is %g off", it, e)
			}
			for k := range before {
				before[k] -= 0.02 * want[k]
			}
			if e := distance(before, mean(w.n, g.x)); e > 1e-12 {
				t.Fatalf("iteration %d: the mean is %g off", it, e)
			}
			for _, name := range []string{"ahead", "ml", "mc"} {
				if e := sumNorm(w.n, func(i int) []float64 { return g.aux(i, name) }); e > 1e-11 {
					t.Fatalf("iteration %d: |sum of %s| = %g", it, name, e)
				}
			}
			prev, x = x, copyModels(w, g)
		}
	})
}

func copyModels(w world, g *game) [][]float64 {
	x := make([][]float64, w.n)
	for i := range x {
		x[i] = slices.Clone(g.x(i))
	}
	return x
}

// sumNorm is the norm of the sum over the agents.
func sumNorm(n int, get func(i int) []float64) float64 {
	m := mean(n, get)
	return distance(m, make([]float64, len(m))) * float64(n)
}

// A smaller a averages more noise: the steady error of the mean and the disagreement fall from a =
// 1 to 0.1 to 0.01.
func TestSTORMReducesNoise(t *testing.T) {
	w := world{seed: 4, n: 5, d: 4, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}}}
	s := rng.New(4, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	best := q.optimum()
	steady := func(a float64) (offset, gap float64) {
		g := w.play(STORM{Gamma: 0.4, Beta: 1, AX: a, ALambda: a}, q, 0.02, 0.005)
		g.grad = noisy(q, 4, 0.5)
		const T, from = 16000, 8000
		for it := range T {
			g.step(t, it)
			if it < from {
				continue
			}
			m := mean(w.n, g.x)
			offset += distance(m, best) * distance(m, best) / (T - from)
			for i := range w.n {
				gap += distance(g.x(i), m) * distance(g.x(i), m) / (T - from)
			}
		}
		return offset, gap
	}
	offset1, gap1 := steady(1)
	offset2, gap2 := steady(0.1)
	offset3, gap3 := steady(0.01)
	t.Logf("a = 1, 0.1, 0.01: offset %.2g %.2g %.2g, disagreement %.2g %.2g %.2g", offset1, offset2, offset3, gap1,
		gap2, gap3)
	if offset3 > 0.6*offset1 || gap2 > gap1 || gap3 > 0.4*gap1 {
		t.Errorf("a = 1, 0.1, 0.01: offset %g %g %g, disagreement %g %g %g", offset1, offset2, offset3, gap1, gap2,
			gap3)
	}
}

// With ZeroStart iteration 0 does nothing, and the first sample has the weight a.
func TestSTORMZeroStart(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		a := STORM{Gamma: 0.3, Beta: 0.7, AX: 0.4, ALambda: 0.2, ZeroStart: true}
		g := w.play(a, q, 0.02, 0.01)
		for i := range w.n {
			for k := range g.x(i) {
				g.x(i)[k] = float64(i*k) / 10
			}
		}
		x := copyModels(w, g)
		g.step(t, 0)
		for i := range w.n {
			if distance(x[i], g.x(i)) != 0 || distance(a.lambda(g, i), make([]float64, w.d)) != 0 {
				t.Fatalf("agent %d moved in iteration 0", i)
			}
		}
		g.step(t, 1)
		l := maskedLaplacian(w, 1, x)
		gi := make([]float64, w.d)
		for i := range w.n {
			q.grad(1, i, gi, x[i])
			for k, v := range g.x(i) {
				if want := x[i][k] - 0.4*(0.02*gi[k]+0.3*l[i][k]); math.Abs(want-v) > 1e-14 {
					t.Fatalf("agent %d: %g, want %g", i, v, want)
				}
				if want := 0.7 * 0.2 * l[i][k]; math.Abs(want-a.lambda(g, i)[k]) > 1e-14 {
					t.Fatalf("dual of agent %d: %g, want %g", i, a.lambda(g, i)[k], want)
				}
			}
		}
	})
}
