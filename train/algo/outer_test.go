package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// outerWorld plays an algorithm with rounds of h, with noisy gradients, on random pairs, or on all
// pairs at once for an AllReducer.
func outerWorld(a Algorithm, w world, q quadratics, h int) *game {
	g := w.play(a, q, 0.05, 0)
	g.mask = func(int, int, int) []uint32 { return nil }
	if a.Traits().Edges.Reduces {
		g.edges = func(int) [][2]int { return w.complete() }
	}
	atEnds(g, h)
	g.grad = noisy(q, w.seed, 0.3)
	return g
}

// heavyBallSteps makes the local steps of an iteration, written out: x of every agent moves along
// u, its gradients with momentum 0.5.
func heavyBallSteps(g *game, t int, x, u [][]float64) {
	grad := make([]float64, len(x[0]))
	for i := range x {
		g.grad(t, i, grad, x[i])
		for k := range grad {
			u[i][k] = 0.5*u[i][k] + grad[k]
			x[i][k] -= 0.05 * u[i][k]
		}
	}
}

// A round of DiLoCo is H steps of every agent by itself, then a step of PyTorch's Nesterov momentum
// with the mean way of the round as the gradient; with rate 1 and no momentum, the mean of the
// models. All agents end with the same bits.
func TestDiLoCoIsNesterovOfRounds(t *testing.T) {
	for _, outer := range []struct{ rate, mu float64 }{{0.7, 0.9}, {1, 0}, {0.4, 0.5}} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			const h = 3
			g := outerWorld(DiLoCo{H: h, Rate: outer.rate, Mu: outer.mu, Descent: heavyBall(0.5)}, w, q, h)
			g.share = w.seed%2 == 0
			slow, buffer := make([]float64, w.d), make([]float64, w.d)
			x, u := zeros(w.n, w.d), zeros(w.n, w.d)
			for it := range 30 {
				heavyBallSteps(g, it, x, u)
				g.step(t, it)
				if (it+1)%h != 0 {
					continue
				}
				average := mean(w.n, func(i int) []float64 { return x[i] })
				for k := range slow {
					d := slow[k] - average[k]
					buffer[k] = outer.mu*buffer[k] + d
					slow[k] -= outer.rate * (d + outer.mu*buffer[k])
				}
				for i := range x {
					copy(x[i], slow)
					if e := distance(slow, g.x(i)); e > 1e-12 || !slices.Equal(g.x(i), g.x(0)) {
						t.Fatalf("iteration %d, agent %d: %g away, or another model than agent 0", it, i, e)
					}
				}
			}
		})
	}
}

// SPARTA leaves the same bits at all agents on the coordinates of the mask, and none of the others
// moves but by the local step. With all coordinates it is local SGD with averages after each step.
func TestSPARTA(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := outerWorld(SPARTA{Every: 2}, w, q, 2)
		g.mask = func(t, _, _ int) []uint32 { return w.mask(t, 0, 0) }
		g.share = true
		for it := range 40 {
			g.step(t, it)
			for i := range w.n {
				for k := range w.d {
					c := g.mask(it, 0, 0)
					if on := c == nil || slices.Contains(c, uint32(k)); on && it%2 == 1 && g.x(i)[k] != g.x(0)[k] {
						t.Fatalf("iteration %d: coordinate %d of agent %d differs", it, k, i)
					}
				}
			}
		}
		all, local := outerWorld(SPARTA{Every: 1}, w, q, 1), outerWorld(DiLoCo{H: 1, Rate: 1}, w, q, 1)
		for it := range 100 {
			all.step(t, it)
			local.step(t, it)
		}
		for i := range w.n {
			if e := distance(all.x(i), local.x(i)); e > 1e-12 {
				t.Errorf("agent %d is %g from local SGD", i, e)
			}
		}
	})
}

// SPARTA within rounds of DiLoCo leaves the mean of the models as the local steps of DiLoCo do, so
// that the slow models of all agents move by the outer step of the mean change. All agents end a
// round with the same bits, and hold the same bits on the mask within it. Written out: local steps,
// averages of the mask, outer steps.
func TestSPARTAWithDiLoCo(t *testing.T) {
	for _, every := range []int{1, 2} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			const h, rate, mu = 6, 0.7, 0.9
			inner := DiLoCo{H: h, Rate: rate, Mu: mu, Descent: heavyBall(0.5)}
			g := outerWorld(SPARTADiLoCo{Every: every, DiLoCo: inner}, w, q, every)
			mask := func(t int) []uint32 {
				if (t+1)%h == 0 {
					return nil
				}
				return w.mask(t, 0, 0)
			}
			g.mask, g.share = func(t, _, _ int) []uint32 { return mask(t) }, w.seed%2 == 0
			slow, buffer := make([]float64, w.d), make([]float64, w.d)
			x, u := zeros(w.n, w.d), zeros(w.n, w.d)
			for it := range 5 * h {
				heavyBallSteps(g, it, x, u)
				g.step(t, it)
				average := mean(w.n, func(i int) []float64 { return x[i] })
				end := (it+1)%h == 0
				for k := range average {
					c := mask(it)
					switch {
					case end:
						d := slow[k] - average[k]
						buffer[k] = mu*buffer[k] + d
						slow[k] -= rate * (d + mu*buffer[k])
						average[k] = slow[k]
					case (it+1)%every != 0 || c != nil && !slices.Contains(c, uint32(k)):
						continue
					}
					for i := range x {
						x[i][k] = average[k]
						if g.x(i)[k] != g.x(0)[k] {
							t.Fatalf("iteration %d: coordinate %d of agent %d differs", it, k, i)
						}
					}
				}
				for i := range x {
					if e := distance(x[i], g.x(i)); e > 1e-12 {
						t.Fatalf("every %d, iteration %d, agent %d: %g away", every, it, i, e)
					}
				}
			}
		})
	}
}

// Streaming DiLoCo is DiLoCo of each part by itself, whose rounds end one after the other; with one
// part it is DiLoCo. All agents have the same bits of a part when its round ends.
func TestStreamingDiLoCoIsDiLoCoOfParts(t *testing.T) {
	const every, rate, mu = 2, 0.7, 0.8
	for _, parts := range []int{1, 3} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			inner := heavyBall(0.5)
			g := outerWorld(StreamingDiLoCo{Every: every, Rate: rate, Mu: mu, Descent: inner}, w, q, every)
			at := func(t int) (from, to int) {
				k := t / every % parts
				return w.d * k / parts, w.d * (k + 1) / parts
			}
			g.mask = func(t, _, _ int) (c []uint32) {
				for from, to := at(t); parts > 1 && from < to; from++ {
					c = append(c, uint32(from))
				}
				return c
			}
			whole := outerWorld(DiLoCo{H: every, Rate: rate, Mu: mu, Descent: inner}, w, q, every)
			slow, buffer := make([]float64, w.d), make([]float64, w.d)
			x, u := zeros(w.n, w.d), zeros(w.n, w.d)
			for it := range 12 * every {
				heavyBallSteps(g, it, x, u)
				g.step(t, it)
				whole.step(t, it)
				average := mean(w.n, func(i int) []float64 { return x[i] })
				for k, to := at(it); (it+1)%every == 0 && k < to; k++ {
					d := slow[k] - average[k]
					buffer[k] = mu*buffer[k] + d
					slow[k] -= rate * (d + mu*buffer[k])
					for i := range x {
						x[i][k] = slow[k]
						if g.x(i)[k] != g.x(0)[k] {
							t.Fatalf("iteration %d: coordinate %d of agent %d differs", it, k, i)
						}
					}
				}
				sameModels(t, it, g, x)
				if parts == 1 {
					sameModels(t, it, whole, x)
				}
			}
		})
	}
}

// The mean slow model of NoLoCo moves by the heavy ball of the mean change over a round, on any
// pairs, also if exchanges fail; that of GASLoC by its own recursion.
func TestOuterMeans(t *testing.T) {
	const h, rate, mu = 2, 0.6, 0.5
	for _, a := range []Algorithm{NoLoCo{H: h, Rate: rate, Mu: mu, Pull: 0.8},
		GASLoC{H: h, Rate: rate, Mu: mu, Gamma: 0.3}} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			g := failing(outerWorld(a, w, q, h), w)
			slow, past, moved := mean(w.n, g.x), mean(w.n, g.x), make([]float64, w.d)
			gi := make([]float64, w.d)
			for it := range 60 {
				if (it+1)%h != 0 {
					g.step(t, it)
					continue
				}
				end := mean(w.n, func(i int) []float64 {
					g.grad(it, i, gi, g.x(i))
					x := slices.Clone(g.x(i))
					for k := range x {
						x[k] -= 0.05 * gi[k]
					}
					return x
				})
				g.step(t, it)
				for k := range slow {
					switch a.(type) {
					case NoLoCo:
						moved[k] = mu*moved[k] + rate*(end[k]-slow[k])
						slow[k] += moved[k]
					case GASLoC:
						y := slow[k] + rate*(end[k]-slow[k])
						slow[k], past[k] = y+mu*(y-past[k]), y
					}
				}
				if e := distance(slow, mean(w.n, g.x)); e > 1e-12 {
					t.Fatalf("%s, iteration %d: the mean is %g off", a.Name(), it, e)
				}
			}
		})
	}
}

// Two agents that always meet have the slow mean of DiLoCo with a heavy ball, which is DiLoCo with
// a step of the momentum alone: written out here.
func TestNoLoCoOfTwoIsHeavyBall(t *testing.T) {
	const h, rate, mu = 3, 0.7, 0.5
	s := rng.New(4, "quadratics")
	q := randomQuadratics(&s, 2, 3)
	g := newGame(NoLoCo{H: h, Rate: rate, Mu: mu, Pull: 0.7}, 2, make([]float64, 3))
	g.alpha, g.grad = 0.05, q.grad
	g.edges = func(int) [][2]int { return [][2]int{{0, 1}} }
	atEnds(g, h)
	var slow, moved float64 // of coordinate 0
	x := [2]float64{}
	for it := range 60 {
		for i := range x { // agents begin a round at their own slow models, not at the mean
			if it%h == 0 {
				x[i] = g.x(i)[0]
			}
			x[i] -= 0.05 * q.h[i][0] * (x[i] - q.b[i][0])
		}
		g.step(t, it)
		if (it+1)%h == 0 {
			moved = mu*moved + rate*((x[0]+x[1])/2-slow)
			slow += moved
			if got := (g.x(0)[0] + g.x(1)[0]) / 2; math.Abs(got-slow) > 1e-12 {
				t.Fatalf("iteration %d: the mean is %v, want %v", it, got, slow)
			}
		}
	}
}

// Agents that are alike follow DiLoCo under GASLoC; without momentum and local steps it is DSGD.
func TestGASLoCAgainstDiLoCoAndDSGD(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		for i := range q.h {
			q.h[i], q.b[i] = q.h[0], q.b[0]
		}
		a := outerWorld(GASLoC{H: 2, Rate: 0.7, Mu: 0.9, Gamma: 0.5}, w, q, 2)
		b := outerWorld(DiLoCo{H: 2, Rate: 0.7, Mu: 0.9}, w, q, 2)
		a.grad, b.grad = q.grad, q.grad
		for it := range 60 {
			a.step(t, it)
			b.step(t, it)
			for i := range w.n {
				if e := distance(a.x(i), b.x(i)); e > 1e-12*(1+distance(b.x(i), make([]float64, w.d))) {
					t.Fatalf("iteration %d, agent %d: %g from DiLoCo", it, i, e)
				}
			}
		}
	})
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		a := outerWorld(GASLoC{H: 1, Rate: 1, Gamma: 0.2}, w, q, 1)
		b := outerWorld(DSGD{Theta: 0.2, ATC: true}, w, q, 1)
		for it := range 60 {
			a.step(t, it)
			b.step(t, it)
		}
		for i := range w.n {
			if e := distance(a.x(i), b.x(i)); e > 1e-12 {
				t.Errorf("agent %d: %g from DSGD", i, e)
			}
		}
	})
}
