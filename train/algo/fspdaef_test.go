package algo

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
)

// copied compares compressed copies over the edges of a graph, of which g.edges says which are
// active.
func copied(g *game, graph [][2]int, q compression) {
	unmasked(g, world{})
	for _, s := range g.state {
		s.Edges = nil
	}
	g.connected(graph)
	type key struct{ t, agent, peer int }
	coords, last := map[key]device.Index{}, dist.Sent{}
	g.prepare = func(r *Round) {
		peers := neighbours(graph, r.Self)
		for k := range r.Links {
			r.Links[k].Coords = make([]device.Index, 1)
		}
		r.Compress = func(v device.Vector, which int) (Compressed, error) {
			picked, at, sent := q(r.T, values(v))
			last = sent
			b := g.dev.NewVector(len(picked))
			copy(values(b), picked)
			var index device.Index
			if at != nil {
				index = g.dev.NewIndex(at, nil)
			}
			coords[key{r.T, r.Self, peers[which-1]}] = index
			return Compressed{Vectors: []device.Vector{b}, Index: index}, nil
		}
	}
	g.heard = func(r *Round) {
		for k := range r.Links {
			r.Links[k].Coords[0] = coords[key{r.T, r.Links[k].Peer, r.Self}]
		}
	}
	g.coded = func(*Link, int) dist.Sent {
		sent := last
		sent.Indices = sent.DataDependent
		return sent
	}
}

// everythingOf is the identity as a compression.
func everythingOf(_ int, v []float64) ([]float64, []uint32, dist.Sent) {
	return slices.Clone(v), nil, dist.Sent{Values: len(v), ValueBits: 32, Mask: len(v), Dim: len(v)}
}

// copying exchanges the largest coordinate over random edges of the graph.
func copying(g *game, w world) { copied(g, w.graph, top1) }

// goldenGames are the golden problems on a ring whose edges are active in turn.
func goldenGames(a Algorithm) (games [3]*game, objectives [3]func(x []float64) float64) {
	for p, d := range [3]int{3, 4, 5} {
		with, of := muonGames(a, d)
		games[p], objectives[p] = with[p], of[p]
		for _, s := range games[p].state {
			clear(values(s.X))
		}
		oneOfRing(games[p])
	}
	return games, objectives
}

// goldenRun compares a golden problem with a trajectory of another program: x_0 and F at the mean
// model, and with the first and third problem a vector of agent 0.
func goldenRun(t *testing.T, g *game, p int, objective func(x []float64) float64, want string, more []float64) {
	t.Helper()
	for it := range goldenSteps[p] {
		g.step(t, it)
	}
	got := append(slices.Clone(g.x(0)[:3]), objective(mean(len(g.state), g.x)))
	if p != 1 {
		got = append(got, more[:3]...)
	}
	compare(t, p, got, want)
}

// compare compares numbers of a golden problem with printed digits.
func compare(t *testing.T, p int, got []float64, want string) {
	t.Helper()
	numbers, args := make([]float64, len(got)), make([]any, len(got))
	for k := range numbers {
		args[k] = &numbers[k]
	}
	if _, err := fmt.Sscan(want, args...); err != nil {
		t.Fatal(err)
	}
	for k := range numbers {
		if !(math.Abs(got[k]-numbers[k]) <= goldenErrors[p]) {
			t.Errorf("problem %d: number %d is %.10f, want %.10f", p, k, got[k], numbers[k])
		}
	}
}

// Trajectories of another program, and the bits of the first.
func TestGoldenCopies(t *testing.T) {
	for name, c := range map[string]struct {
		q    compression
		want [3]string
		bits [3]uint64
	}{
		"top-1": {top1, [3]string{"0.35164719 0.36917361 1.05540530 7.24434134 0.27918900 0 -2.73452224",
			"-1.18547913 1.33846117 1.11346081 12.83119961",
			"-1.3797353979 -0.5308245734 0.5789115703 " +
				"5.6815693659 0 0 0"}, [3]uint64{408, 408, 1152}},
		"sign": {signOf, [3]string{"1.23068922 1.01453693 0.70227027 7.35062471 -1.82206030 -1.82206030 -1.82206030",
			"-0.50582817 0.75192911 0.21467850 12.83289526",
			"-0.1378335362 0.0282675748 0.0803044857 " +
				"5.7045411836 -2.8511580499 -1.4437015973 1.4437015973"}, same(420)},
	} {
		t.Run(name, func(t *testing.T) {
			games, objectives := goldenGames(EF{Gamma: 0.4, Beta: 1})
			for p, g := range games {
				copied(g, ringEdges(len(g.state)), c.q)
				goldenRun(t, g, p, objectives[p], c.want[p], g.aux(0, "lambda"))
				if p == 0 && g.bits() != c.bits {
					t.Errorf("bits %d, want %d", g.bits(), c.bits)
				}
			}
		})
	}
}

// Within four thousand iterations with exact gradients the agents reach the optimum of all problems.
func TestCopiesReachTheOptimum(t *testing.T) {
	for name, q := range map[string]compression{"top-1": top1, "sign": signOf} {
		games, _ := goldenGames(EF{Gamma: 0.4, Beta: 1})
		for p, g := range games {
			exact := [3]quadratics{goldenQuadratics(3), fiveQuadratics(4), sixQuadratics(5)}[p]
			g.grad = exact.grad
			copied(g, ringEdges(len(g.state)), q)
			for it := 0; it < 4000 && (it%200 != 0 || g.far(exact.optimum()) > 1e-11); it++ {
				g.step(t, it)
			}
			for i := range g.state {
				if e := distance(g.x(i), exact.optimum()); e > 1e-10 {
					t.Errorf("%s, problem %d: agent %d ends %g from the optimum", name, p, i, e)
				}
			}
		}
	}
}

// With the identity it is FSPDA-SA on whole vectors, wherever the agents start.
func TestCopiesOfEverythingAreSA(t *testing.T) {
	for _, d := range []Descent{{}, heavyBall(0.5), adamW(true), adamW(false)} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			w.k = 0
			a := w.play(EF{0.25, 0.8, d}, q, 0.02, 0.01)
			b := w.play(SA{Gamma: 0.25, Beta: 0.8, Descent: d}, q, 0.02, 0.01)
			for i := range w.n {
				for k := range w.d {
					a.x(i)[k], b.x(i)[k] = float64(k)/3-1, float64(k)/3-1
				}
			}
			copied(a, w.graph, everythingOf)
			a.grad, b.grad = noisy(q, w.seed, 0.3), noisy(q, w.seed, 0.3)
			failing(a, w)
			failing(b, w)
			for it := range 200 {
				a.step(t, it)
				b.step(t, it)
				for i := range w.n {
					if e := distance(a.x(i), b.x(i)); e > 1e-12 {
						t.Fatalf("iteration %d, agent %d: differ by %g", it, i, e)
					}
				}
			}
		})
	}
}

// Both ends of an edge hold the same two copies to the bit, also after exchanges that failed, and
// the copies start at the first model.
func TestCopiesOfBothEndsAreEqual(t *testing.T) {
	for _, q := range []compression{top1, signOf, everythingOf} {
		forWorlds(t, func(t *testing.T, w world, objectives quadratics) {
			g := w.play(EF{Gamma: 0.2, Beta: 1}, objectives, 0.02, 0.01)
			for i := range w.n {
				g.x(i)[1] = 3
			}
			copied(g, w.graph, q)
			failing(g, w)
			g.grad = noisy(objectives, w.seed, 0.3)
			of := func(i, j, which int) []float64 { return values(g.state[i].Edge(j).Vectors[which]) }
			for it := range 150 {
				for _, e := range w.graph {
					if it == 0 && !slices.Equal(of(e[0], e[1], efOther), g.x(0)) {
						t.Fatal("a copy does not start at the first model")
					}
					for _, e := range [][2]int{e, {e[1], e[0]}} {
						if !slices.Equal(of(e[0], e[1], efOwn), of(e[1], e[0], efOther)) {
							t.Fatalf("iteration %d: the ends of edge %v hold different copies of %[2]v[0]", it, e)
						}
					}
				}
				g.step(t, it)
			}
		})
	}
}

// Copies in plain loops, one for each direction of an edge, with random step sizes, local
// optimizers and failing exchanges.
func TestCopiesAreTheirRecursion(t *testing.T) {
	for _, inner := range []float64{0, 0.6, -1} {
		for _, q := range []compression{top1, signOf} {
			forWorlds(t, func(t *testing.T, w world, objectives quadratics) {
				s := rng.New(w.seed, "settings")
				alpha, eta, gamma, beta := 0.01+0.03*s.Float64(), 0.02*s.Float64(), 0.1+0.2*s.Float64(), 0.5+s.Float64()
				steps := newPlainSteps(w, inner)
				g := w.play(EF{gamma, beta, steps.descent()}, objectives, alpha, eta)
				copied(g, w.graph, q)
				failing(g, w)
				g.grad = noisy(objectives, w.seed, 0.3)
				x, lambda, copies := zeros(w.n, w.d), zeros(w.n, w.d), map[[2]int][]float64{}
				for _, e := range w.graph {
					copies[e], copies[[2]int{e[1], e[0]}] = make([]float64, w.d), make([]float64, w.d)
				}
				for it := range 60 {
					move := map[[2]int][]float64{}
					for _, e := range g.edges(it) {
						for _, way := range [][2]int{e, {e[1], e[0]}} {
							apart := slices.Clone(x[way[0]])
							for k, h := range copies[way] {
								apart[k] -= h
							}
							picked, at, _ := q(it, apart)
							move[way] = make([]float64, w.d)
							for k, v := range picked {
								if at != nil {
									move[way][at[k]] = v
								} else {
									move[way][k] = v
								}
							}
						}
					}
					for i := range w.n {
						gi := make([]float64, w.d)
						g.grad(it, i, gi, x[i])
						for k, u := range steps.direct(i, gi, slices.Clone(x[i])) {
							x[i][k] -= alpha*u + eta*lambda[i][k]
						}
					}
					for _, e := range g.edges(it) {
						if g.lost(it, e[0], e[1]) {
							continue
						}
						for _, way := range [][2]int{e, {e[1], e[0]}} {
							for k, v := range move[way] {
								copies[way][k] += v
							}
						}
						for k, h := range copies[e] {
							d := h - copies[[2]int{e[1], e[0]}][k]
							x[e[0]][k], lambda[e[0]][k] = x[e[0]][k]-gamma*d, lambda[e[0]][k]+beta*d
							x[e[1]][k], lambda[e[1]][k] = x[e[1]][k]+gamma*d, lambda[e[1]][k]-beta*d
						}
					}
					g.step(t, it)
					sameModels(t, it, g, x)
				}
			})
		}
	}
}
