package algo

import (
	"testing"

	"fspda/internal/rng"
)

// Trajectories of TiCoPD and DoCoM that another program computed, and the bits of the first
// problem.
func TestGoldenAnnounced(t *testing.T) {
	lambda := func(g *game) []float64 { return g.aux(0, "lambda") }
	tracker := func(g *game) []float64 { return g.aux(0, "tracker") }
	for name, c := range map[string]struct {
		algo Algorithm
		q    compression
		read func(g *game) []float64
		want [3]string
		bits [3]uint64
	}{
		"ticopd top-1": {TiCoPD{Theta: 0.3, Beta: 1}, top1, lambda, [3]string{"0.91273659 1.00787457 0.99907977 " +
			"7.28354536 -1.37711782 -2.20412836 -3.23813289", "-0.41123730 0.66260406 0.58194936 12.81342707",
			"-0.0600391128 -0.1052794140 0.0348479710 " +
				"5.6717008448 -3.6002933289 -1.3275972089 1.8301936555"},
			[3]uint64{1632, 1632, 4608}},
		"ticopd sign": {TiCoPD{Theta: 0.3, Beta: 1}, signOf, lambda, [3]string{"0.94139341 1.12771165 0.87476544 " +
			"7.30436396 -1.40182265 -2.62841607 -2.82818176", "-0.41324335 0.69708086 0.52583552 12.81784662",
			"-0.1971811993 -0.1326357882 0.1202738566 " +
				"5.6770763597 -3.1209855329 -1.2188020579 1.5425565702"},
			same(1680)},
		"docom top-1": {DoCoM{Theta: 0.3, A: 0.3}, top1, tracker, [3]string{"1.44127204 1.47564467 1.48142317 " +
			"6.89777896 -1.56765975 -1.18689166 -1.59697818", "0.14946736 0.23655025 0.66174281 12.77461638",
			"0.0244222819 -0.1553350060 0.0849728982 " +
				"5.6527885490 -0.0913261574 0.1719114749 -0.1842156757"},
			[3]uint64{3264, 3264, 9216}},
	} {
		t.Run(name, func(t *testing.T) {
			games, objectives := goldenGames(c.algo)
			for p, g := range games {
				packedOver(ringEdges(len(g.state)), c.q)(g)
				goldenRun(t, g, p, objectives[p], c.want[p], c.read(g))
				if p == 0 && g.bits() != c.bits {
					t.Errorf("bits %d, want %d", g.bits(), c.bits)
				}
			}
		})
	}
}

// Within four thousand iterations with exact gradients the agents reach the optimum of all problems.
func TestAnnouncedReachTheOptimum(t *testing.T) {
	for _, c := range []struct {
		algo Algorithm
		q    compression
	}{{TiCoPD{Theta: 0.3, Beta: 1}, top1}, {TiCoPD{Theta: 0.3, Beta: 1}, signOf}, {DoCoM{Theta: 0.3, A: 0.3}, top1}} {
		games, _ := goldenGames(c.algo)
		for p, g := range games {
			exact := [3]quadratics{goldenQuadratics(3), fiveQuadratics(4), sixQuadratics(5)}[p]
			g.grad = exact.grad
			packedOver(ringEdges(len(g.state)), c.q)(g)
			for it := 0; it < 4000 && (it%200 != 0 || g.far(exact.optimum()) > 1e-11); it++ {
				g.step(t, it)
			}
			for i := range g.state {
				if e := distance(g.x(i), exact.optimum()); e > 1e-10 {
					t.Errorf("%+v, problem %d: agent %d ends %g from the optimum", c.algo, p, i, e)
				}
			}
		}
	}
}

// TiCoPD with the identity is FSPDA-SA with the Laplacian I - W, whose models travel an iteration
// before they are compared.
func TestTiCoPDOfEverything(t *testing.T) {
	for _, mu := range []float64{0, 0.5} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			w.k = 0
			const alpha, eta, theta, beta = 0.02, 0.01, 0.4, 0.7
			g := w.play(TiCoPD{theta, beta, heavyBall(mu)}, q, alpha, eta)
			g.broadcasting(w.graph, allActive, everything)
			g.grad = noisy(q, w.seed, 0.3)
			steps, weights := newPlainSteps(w, mu), mixing(w.graph, w.n)
			x, lambda, copies := zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n, w.d)
			for it := range 200 {
				for i := range w.n {
					gi := make([]float64, w.d)
					g.grad(it, i, gi, x[i])
					u := steps.direct(i, gi, x[i])
					for k := range u {
						d := copies[i][k]
						for j := range w.n {
							d -= weights[i][j] * copies[j][k]
						}
						x[i][k] -= alpha*u[k] + eta*lambda[i][k] + theta*d
						lambda[i][k] += beta * d
					}
				}
				for i := range x {
					copy(copies[i], x[i])
				}
				g.step(t, it)
				sameModels(t, it, g, x)
			}
		})
	}
}

// DoCoM with the identity, theta = 1 and a = 1 is adapt-then-combine tracking of gradients, which
// starts at W·g.
func TestDoCoMOfEverythingIsDSGT(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		w.k = 0
		const alpha = 0.03
		g := w.play(DoCoM{Theta: 1, A: 1}, q, alpha, 0).broadcasting(w.graph, allActive, everything)
		g.grad = noisy(q, w.seed, 0.3)
		weights := mixing(w.graph, w.n)
		averaged := func(v [][]float64) [][]float64 {
			out := zeros(w.n, w.d)
			for i := range v {
				for j := range v {
					for k := range v[i] {
						out[i][k] += weights[i][j] * v[j][k]
					}
				}
			}
			return out
		}
		x, y, old := zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n, w.d)
		for it := range 100 {
			for i := range w.n {
				gi := make([]float64, w.d)
				g.grad(it, i, gi, x[i])
				for k := range gi {
					y[i][k] += gi[k] - old[i][k]
				}
				old[i] = gi
			}
			y = averaged(y)
			for i := range x {
				for k := range x[i] {
					x[i][k] -= alpha * y[i][k]
				}
			}
			x = averaged(x)
			g.step(t, it)
			sameModels(t, it, g, x)
		}
	})
}

// DoCoM keeps SG = W·G, SH = W·H and the mean of its trackers, which is that of the estimates, for
// every set of active agents.
func TestDoCoMInvariants(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.play(DoCoM{Theta: 0.2, A: 0.3}, q, 0.02, 0)
		g.broadcasting(w.graph, func(it, i int) bool {
			s := rng.New(w.seed, "broadcast", uint64(it), uint64(i))
			return s.Float64() < 0.4
		}, w.ownMask)
		g.grad = noisy(q, w.seed, 0.3)
		weights := mixing(w.graph, w.n)
		of := func(name string) []float64 { return mean(w.n, func(i int) []float64 { return g.aux(i, name) }) }
		estimate, before := make([]float64, w.d), zeros(w.n, w.d)
		for it := range 200 {
			want, now := mean(w.n, g.x), zeros(w.n, w.d)
			for i := range w.n {
				copy(now[i], g.x(i))
			}
			fresh, stale := make([]float64, w.d), make([]float64, w.d)
			for i := range w.n {
				gi := make([]float64, w.d)
				for _, at := range []struct {
					x, sum []float64
				}{{now[i], fresh}, {before[i], stale}} {
					g.grad(it, i, gi, at.x)
					for k := range gi {
						at.sum[k] += gi[k] / float64(w.n)
					}
				}
			}
			for k := range estimate {
				if estimate[k] = fresh[k] + 0.7*(estimate[k]-stale[k]); it == 0 {
					estimate[k] = fresh[k]
				}
				want[k] -= 0.02 * estimate[k]
			}
			before = now
			g.step(t, it)
			off := distance(of("v"), of("tracker")) + distance(of("v"), estimate)
			if e := off + distance(want, mean(w.n, g.x)); e > 1e-11 {
				t.Fatalf("iteration %d: the means of estimates, trackers and models are %g off", it, e)
			}
			for _, names := range [][2]string{{"g", "sg"}, {"h", "sh"}} {
				for i := range w.n {
					sum := make([]float64, w.d)
					for j := range w.n {
						for k, v := range g.aux(j, names[0]) {
							sum[k] += weights[i][j] * v
						}
					}
					if e := distance(sum, g.aux(i, names[1])); e > 1e-12 {
						t.Fatalf("iteration %d: %s of agent %d is %g from what W says", it, names[1], i, e)
					}
				}
			}
		}
	})
}
