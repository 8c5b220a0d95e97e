package algo

import "testing"

// tracker returns y_i = q_i + g_i of iteration t, at agent i's model.
func tracker(g *game, t, i int) []float64 {
	y := make([]float64, len(g.x(i)))
	g.grad(t, i, y, g.x(i))
	for k, q := range g.aux(i, "q") {
		y[k] += q
	}
	return y
}

func TestGoldenDIGing(t *testing.T) {
	g := goldenGame(DIGing{})
	g.mask = func(int, int, int) []uint32 { return nil }
	golden(t, g, "1.3362525055 1.1978158556 1.4008199896", "1.5359921358 1.7462000798 1.7097384793")
	check(t, "y_0", tracker(g, 6, 0), "-1.3322020533 -1.0039602310 -1.2349294233")
}

func TestGoldenNEXT(t *testing.T) {
	g := wholeRing(NEXT{}, always)
	golden(t, g, "1.5082227755 1.6155244938 1.5795316564", "1.4831095071 1.6145806862 1.5807262191")
	check(t, "y_0", tracker(g, 6, 0), "-1.3703439551 -0.7289702465 -0.7376557830")
}

// Gradient tracking as published, with the gradient of iteration t+1 inside iteration t, on random
// graphs: DIGing is combine-then-adapt; NEXT is adapt-then-combine, with decaying steps.
func TestTrackingIsItsRecursion(t *testing.T) {
	const alpha, kappa = 0.02, 0.01
	for _, a := range []Algorithm{DIGing{}, NEXT{Kappa: kappa}} {
		t.Run(a.Name(), func(t *testing.T) {
			forWorlds(t, func(t *testing.T, w world, q quadratics) {
				w.k = 0
				g := w.play(a, q, alpha, 0)
				g.grad = noisy(q, w.seed, 0.2)
				x, y, last := zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n, w.d)
				for i := range x {
					g.grad(0, i, y[i], x[i])
					copy(last[i], y[i])
				}
				b := 1.0
				for it := range 300 {
					if _, adapt := a.(NEXT); adapt {
						z := zeros(w.n, w.d)
						for i := range z {
							for k := range z[i] {
								z[i][k] = x[i][k] - alpha*b*y[i][k]
							}
						}
						x = mixedActive(w, it, z)
						b *= 1 - kappa*b
					} else {
						z := mixedActive(w, it, x)
						for i := range z {
							for k := range z[i] {
								x[i][k] = z[i][k] - alpha*y[i][k]
							}
						}
					}
					y = mixedActive(w, it, y)
					gi := make([]float64, w.d)
					for i := range y {
						g.grad(it+1, i, gi, x[i])
						for k := range gi {
							y[i][k] += gi[k] - last[i][k]
						}
						copy(last[i], gi)
					}
					g.step(t, it)
					for i := range x {
						if e := distance(x[i], g.x(i)); e > 1e-12 {
							t.Fatalf("iteration %d, agent %d: differ by %g", it, i, e)
						}
						if e := distance(y[i], tracker(g, it+1, i)); e > 1e-11 {
							t.Fatalf("iteration %d, tracker of agent %d: differ by %g", it, i, e)
						}
					}
					ybar, gbar := mean(w.n, func(i int) []float64 { return tracker(g, it+1, i) }), mean(w.n,
						func(i int) []float64 { return last[i] })
					if e := distance(ybar, gbar); e > 1e-12 {
						t.Fatalf("iteration %d: mean y and mean g differ by %g", it, e)
					}
				}
			})
		})
	}
}

// mixedActive is W_t x with the Metropolis weights of the active graph.
func mixedActive(w world, it int, x [][]float64) [][]float64 {
	active := w
	active.graph = w.edges(it)
	return mixed(active, x)
}

// The step of NEXT at t does not depend on the order of the calls.
func TestStepDecay(t *testing.T) {
	var next stepDecay
	want := 1.0
	for it := range 50 {
		var jump stepDecay
		if a, b := next.at(it, 0.3), jump.at(it, 0.3); a != want || b != want {
			t.Fatalf("b_%d = %v and %v, want %v", it, a, b, want)
		}
		want *= 1 - 0.3*want
	}
	if next.at(1, 0.3) != 0.7 {
		t.Error("going back gives another value")
	}
}
