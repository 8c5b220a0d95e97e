package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/dist"
)

// quantized lets a game send codes of a lattice.
func (g *game) quantized(l *dist.Lattice) *game {
	g.prepare = func(r *Round) {
		r.Encode = func(dst, x device.Vector, which int) error {
			host := make([]float32, x.Len())
			g.dev.Read(host, x)
			err := l.Encode(host, host, r.T, r.Self, which)
			g.dev.Write(dst, host)
			return err
		}
		r.Decode = func(dst, codes, ref device.Vector) error {
			z, near := make([]float32, ref.Len()), make([]float32, ref.Len())
			g.dev.Read(z, codes)
			g.dev.Read(near, ref)
			l.Decode(z, z, near)
			g.dev.Write(dst, z)
			g.dev.Do(device.Combine(dst, device.Term{A: l.Side, V: dst}))
			return nil
		}
	}
	return g
}

func lattice(t *testing.T, spec string) *dist.Lattice {
	t.Helper()
	l, err := dist.ParseLattice(spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSwarmGolden(t *testing.T) {
	for _, c := range []struct {
		name    string
		algo    Swarm
		lattice bool
		x0, x2  string
		c0      string
	}{
		{"blocking", Swarm{Blocking: true, Steps: 1}, false, "0.7243378448 0.6996662585 0.8578069967",
			"1.0237501029 0.9694892990 1.0497242362", ""},
		{"blocking, lattice", Swarm{Blocking: true, Steps: 1}, true, "0.7263617550 0.6979383900 0.8572526578",
			"1.0134899650 0.9782858213 1.0430234963", ""},
		{"non-blocking", Swarm{}, false, "0.5454178503 0.4302611792 0.4676190000",
			"2.2150416386 1.5580068222 0.9375116114", "0.5004591761 0.4149526576 0.5406000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := goldenGame(c.algo)
			g.mask = func(int, int, int) []uint32 { return nil }
			if c.lattice {
				g.quantized(lattice(t, "lattice(0.0437,64)"))
			}
			for it := range 6 {
				g.step(t, it)
			}
			check(t, "x_0", g.x(0), c.x0)
			check(t, "x_2", g.x(2), c.x2)
			if c.c0 != "" {
				check(t, "c_0", g.aux(0, "c"), c.c0)
			}
		})
	}
}

// In the blocking form the mean of the models moves by -(alpha/n) times the sum of the directions
// used; a lattice adds at most s/(2n) in each coordinate.
func TestSwarmBlockingMean(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		for _, l := range []*dist.Lattice{nil, lattice(t, "lattice(0.01,4096)")} {
			w.k, w.many = 0, false
			const steps = 3
			g := w.play(Swarm{Blocking: true, Steps: steps}, q, 0.02, 0)
			bound := 1e-12
			if l != nil {
				g.quantized(l)
				// float32 rounds what the lattice reads
				bound = l.Side / (2 * float64(w.n)) * (1 + 1e-4)
			}
			batches := withNext(g)
			for it := range 200 {
				want := mean(w.n, g.x)
				for _, i := range w.edges(it)[0] {
					x, gi := append([]float64(nil), g.x(i)...), make([]float64, w.d)
					for range steps {
						q.grad(it, i, gi, x)
						for k := range x {
							x[k] -= 0.02 * gi[k]
							want[k] -= 0.02 * gi[k] / float64(w.n)
						}
					}
				}
				g.step(t, it)
				got := mean(w.n, g.x)
				for k := range want {
					if math.Abs(got[k]-want[k]) > bound {
						t.Fatalf("iteration %d: the mean is %g off, more than %g", it, got[k]-want[k], bound)
					}
				}
			}
			if *batches != 200*2*(steps-1) {
				t.Errorf("asked for %d further batches, want %d", *batches, 200*2*(steps-1))
			}
		}
	})
}

// withNext counts the calls of Round.Next.
func withNext(g *game) *int {
	n, before := new(int), g.prepare
	g.prepare = func(r *Round) {
		r.NextBatch = func() { *n++ }
		if before != nil {
			before(r)
		}
	}
	return n
}

// In the non-blocking form the mean of the copies moves by -(o_i - x_i)/n, i the initiator; a
// lattice adds at most s/n.
func TestSwarmNonBlockingMean(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		for _, l := range []*dist.Lattice{nil, lattice(t, "lattice(0.01,4096)")} {
			w.k, w.many = 0, false
			g := w.play(Swarm{Descent: heavyBall(0.3)}, q, 0.02, 0)
			bound := 1e-12
			if l != nil {
				g.quantized(l)
				bound = l.Side / float64(w.n) * (1 + 1e-4)
			}
			g.step(t, 0)
			copies := func(i int) []float64 { return g.aux(i, "c") }
			gi := make([]float64, w.d)
			for it := 1; it < 300; it++ {
				want := mean(w.n, copies)
				i := w.edges(it)[0][0]
				q.grad(it, i, gi, g.x(i))
				for k := range want {
					u := 0.3*g.aux(i, "momentum")[k] + gi[k]
					want[k] -= (g.aux(i, "o")[k] - (g.x(i)[k] - 0.02*u)) / float64(w.n)
				}
				g.step(t, it)
				for k, v := range mean(w.n, copies) {
					if math.Abs(v-want[k]) > bound {
						t.Fatalf("iteration %d: the mean of the copies is %g off, more than %g", it, v-want[k], bound)
					}
				}
			}
		}
	})
}

// The non-blocking form with a lattice is its recursion to rounding if the replay reads float32 as
// the codec does. The mean of two lattice points lies in the middle of a cell in half of all cases,
// an exact tie, and a replay that reads float64 rounds many of these the other way. Each makes a
// difference of one cell; they add up, while averaging and gradients damp them: the replays stay
// within tens of cells.
func TestSwarmLatticeReplay(t *testing.T) {
	var worst [2]float64
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		w.k, w.many = 0, false
		l := lattice(t, "lattice(0.01,4096)")
		for which, read := range []func(v float64) float64{
			func(v float64) float64 { return float64(float32(v)) }, func(v float64) float64 { return v }} {
			g := w.play(Swarm{}, q, 0.02, 0).quantized(l)
			x := make([][]float64, w.n)
			for i := range x {
				x[i] = slices.Clone(g.x(i))
			}
			o, c := cloned(x), cloned(x)
			gi := make([]float64, w.d)
			for it := range 1000 {
				for i := range x {
					q.grad(it, i, gi, x[i])
					for k := range gi {
						x[i][k] -= 0.02 * gi[k]
					}
				}
				i, j := w.edges(it)[0][0], w.edges(it)[0][1]
				for k := range gi {
					point := func(v float64) float64 { return l.Side * math.RoundToEven(read(v)/l.Side) }
					mean := (point(c[i][k]) + point(c[j][k])) / 2
					c[i][k], c[j][k] = mean-(o[i][k]-x[i][k]), mean
					o[i][k], x[i][k] = c[i][k], c[i][k]
				}
				g.step(t, it)
				for i := range x {
					for k, v := range g.x(i) {
						worst[which] = max(worst[which], math.Abs(v-x[i][k])/l.Side)
					}
				}
			}
		}
	})
	if worst[0] > 1e-6 {
		t.Errorf("the replay in float32 is %g cells off", worst[0])
	}
	if worst[1] < 0.5 || worst[1] > 30 {
		t.Errorf("the replay in float64 is %g cells off: ties no longer explain it", worst[1])
	}
	t.Logf("replays of float32 and of float64 are %.3g and %.3g cells off", worst[0], worst[1])
}

func cloned(x [][]float64) (all [][]float64) {
	for _, v := range x {
		all = append(all, slices.Clone(v))
	}
	return all
}

// Agents with equal objectives reach the optimum and agree, although in the non-blocking form each
// update of a copy is a difference of models.
func TestSwarmEqualObjectives(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		w.k, w.many = 0, false
		for i := range q.h {
			q.h[i], q.b[i] = q.h[0], q.b[0]
		}
		for _, a := range []Swarm{{Blocking: true, Steps: 2}, {}, {Descent: heavyBall(0.5)}} {
			g := w.play(a, q, 0.1, 0)
			withNext(g)
			for it := range 4000 {
				g.step(t, it)
			}
			for i := range w.n {
				if e := distance(g.x(i), q.optimum()); e > 1e-10 {
					t.Errorf("%+v: agent %d is %g from the optimum", a, i, e)
				}
			}
		}
	})
}

// A failed exchange leaves both ends with their own steps; the run continues.
func TestSwarmIdle(t *testing.T) {
	for _, a := range []Swarm{{Blocking: true, Steps: 1}, {}} {
		g := newGame(a, 2, []float64{1, -2})
		g.alpha = 0.1
		q := quadratics{h: [][]float64{{1, 1}, {1, 1}}, b: [][]float64{{0, 0}, {0, 0}}}
		g.grad = q.grad
		g.edges = func(int) [][2]int { return [][2]int{{0, 1}} }
		for i := range g.state {
			r := g.round(0, i, g.edges(0))
			if err := a.Local(g.state[i], r); err != nil {
				t.Fatal(err)
			}
			if err := a.Mix(g.state[i], r); err != nil { // nothing was received
				t.Fatal(err)
			}
			if e := distance(g.x(i), []float64{0.9, -1.8}); e > 1e-15 {
				t.Errorf("%+v: agent %d is %g from a step alone", a, i, e)
			}
		}
	}
}
