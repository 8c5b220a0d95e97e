package algo

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// broadcasting lets a game run CHOCO over the whole graph: Metropolis weights, the active agents
// given by active, and as compressor the mask that coords gives each agent (nil: all coordinates).
func (g *game) broadcasting(graph [][2]int, active func(t, i int) bool, coords func(t, i int) []uint32) *game {
	w := mixing(graph, len(g.state))
	g.edges = func(int) [][2]int { return graph }
	g.prepare = func(r *Round) {
		r.SelfWeight, r.Active = w[r.Self][r.Self], active(r.T, r.Self)
		for k := range r.Links {
			l := &r.Links[k]
			l.FixedWeight, l.PeerInactive, l.Mute = w[r.Self][l.Peer], !active(r.T, l.Peer), !r.Active
			index, _ := g.index(coords(r.T, l.Peer))
			l.Coords = []device.Index{index, index}
		}
		r.Compress = func(v device.Vector, _ int) (Compressed, error) {
			idx, n := g.index(coords(r.T, r.Self))
			b := g.dev.NewVector(n)
			g.dev.Do(device.Gather(b, v, idx))
			return Compressed{Vectors: []device.Vector{b}, Index: idx}, nil
		}
	}
	return g
}

func (g *game) index(c []uint32) (device.Index, int) {
	if c == nil {
		return nil, g.state[0].X.Len()
	}
	return g.dev.NewIndex(c, nil), len(c)
}

// mixing is the matrix of Metropolis weights.
func mixing(graph [][2]int, n int) [][]float64 {
	degree := make([]int, n)
	for _, e := range graph {
		degree[e[0]]++
		degree[e[1]]++
	}
	w := zeros(n, n)
	for i := range w {
		w[i][i] = 1
	}
	for _, e := range graph {
		v := 1 / float64(1+max(degree[e[0]], degree[e[1]]))
		w[e[0]][e[1]], w[e[1]][e[0]] = v, v
		w[e[0]][e[0]] -= v
		w[e[1]][e[1]] -= v
	}
	return w
}

func allActive(int, int) bool { return true }

func everything(int, int) []uint32 { return nil }

// ownMask is a mask sampled by the agent itself.
func (w world) ownMask(t, i int) []uint32 { return w.mask(t, i, i) }

var ring4 = [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}}

func TestCHOCOGolden(t *testing.T) {
	for _, c := range []struct {
		name   string
		active func(t, i int) bool
		x0, x2 string
	}{
		{"all active", allActive, "0.9741199279 1.0714026791 1.0126931881", "1.8932712424 1.7744571224 1.5802097144"},
		{"broadcast", func(t, i int) bool { return t%4 == i }, "0.9454254400 0.9359510226 0.3931026673",
			"1.8580249950 2.4328193332 1.0061484379"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := goldenGame(CHOCO{Theta: 0.3})
			mask := g.mask
			g.broadcasting(ring4, c.active, func(t, _ int) []uint32 { return mask(t, 0, 0) })
			for it := range 6 {
				g.step(t, it)
			}
			check(t, "x_0", g.x(0), c.x0)
			check(t, "x_2", g.x(2), c.x2)
		})
	}
}

// The mean moves by -alpha times the mean direction, and s = W·xhat, for every compressor and every
// set of active agents, with and without momentum.
func TestCHOCOInvariants(t *testing.T) {
	for _, a := range []CHOCO{{Theta: 0.2}, {Theta: 0.1, Descent: heavyBall(0.6)}} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			active := func(it, i int) bool {
				s := rng.New(w.seed, "broadcast", uint64(it), uint64(i))
				return s.Float64() < 0.4
			}
			g := w.play(a, q, 0.02, 0).broadcasting(w.graph, active, w.ownMask)
			weights := mixing(w.graph, w.n)
			u := zeros(w.n, w.d)
			gi := make([]float64, w.d)
			for it := range 300 {
				want := mean(w.n, g.x)
				for i := range u {
					q.grad(it, i, gi, g.x(i))
					for k := range gi {
						u[i][k] = momentumOf(a)*u[i][k] + gi[k]
						want[k] -= 0.02 * u[i][k] / float64(w.n)
					}
				}
				g.step(t, it)
				if e := distance(want, mean(w.n, g.x)); e > 1e-12 {
					t.Fatalf("iteration %d: the mean is %g off", it, e)
				}
				for i := range w.n {
					sum := make([]float64, w.d)
					for j := range w.n {
						for k, v := range g.aux(j, "xhat") {
							sum[k] += weights[i][j] * v
						}
					}
					if e := distance(sum, g.aux(i, "s")); e > 1e-11 {
						t.Fatalf("iteration %d: s of agent %d is %g from W·xhat", it, i, e)
					}
				}
			}
		})
	}
}

// With the identity compressor and theta = 1, CHOCO is adapt-then-combine: x ← W(x - alpha·g).
func TestCHOCOIdentityIsATC(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.play(CHOCO{Theta: 1}, q, 0.05, 0).broadcasting(w.graph, allActive, everything)
		weights := mixing(w.graph, w.n)
		x, gi := zeros(w.n, w.d), make([]float64, w.d)
		for it := range 300 {
			y := zeros(w.n, w.d)
			for i := range x {
				q.grad(it, i, gi, x[i])
				for k := range gi {
					y[i][k] = x[i][k] - 0.05*gi[k]
				}
			}
			for i := range x {
				clear(x[i])
				for j := range x {
					for k := range x[i] {
						x[i][k] += weights[i][j] * y[j][k]
					}
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

// The bias is proportional to a small alpha: halving it about halves the consensus error and the
// offset of the mean.
func TestCHOCOBias(t *testing.T) {
	w := world{seed: 7, n: 5, d: 6, k: 3, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}}}
	s := rng.New(7, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	bias := func(alpha float64) (gap, offset float64) {
		g := w.play(CHOCO{Theta: 0.5}, q, alpha, 0).broadcasting(w.graph, allActive, w.ownMask)
		const rounds, tail = 7000, 4000 // random coordinates: averaged over the end
		for it := range rounds {
			g.step(t, it)
			if it < rounds-tail {
				continue
			}
			m := mean(w.n, g.x)
			for i := range w.n {
				e := distance(g.x(i), m)
				gap += e * e / tail
			}
			offset += distance(m, q.optimum()) / tail
		}
		return math.Sqrt(gap), offset
	}
	checkBias(t, bias)
}

// A missing message is an error, since s would differ from W·xhat permanently. An inactive peer is
// no error.
func TestCHOCOMissing(t *testing.T) {
	g := newGame(CHOCO{Theta: 0.3}, 2, []float64{1})
	g.grad = func(_, _ int, dst, _ []float64) { clear(dst) }
	g.broadcasting([][2]int{{0, 1}}, func(_, i int) bool { return i == 0 }, everything)
	g.step(t, 0)
	r := g.round(1, 1, g.edges(1))
	if err := g.algo.Local(g.state[1], r); err != nil {
		t.Fatal(err)
	}
	var missing *MissingMessageError
	if err := g.algo.Mix(g.state[1], r); !errors.As(err, &missing) || missing.Peer != 0 || missing.Self != 1 {
		t.Errorf("%v does not name the lost message of agent 0", err)
	}
}

// The consensus step has a limit: if each coordinate is sent with probability delta,
// theta·(1-lambda_min(W)) must stay below 2·delta/(2-delta), about delta, or the mean-square
// differences between agents grow. The limit holds for equal coordinates at all agents; independent
// samples allow more.
func TestCHOCOThetaLimit(t *testing.T) {
	for _, delta := range []float64{0.05, 0.2, 0.5} {
		limit := 2 * delta / (2 - delta) // of two agents, whose W has the eigenvalues 1 and 0
		for _, c := range []struct {
			theta  float64
			stable bool
		}{{0.8 * limit, true}, {1.3 * limit, false}} {
			s := rng.New(1, fmt.Sprint(delta))
			growth := meanSquareGrowth(t, &s, c.theta, delta)
			if (growth < 0) != c.stable {
				t.Errorf("delta %g, theta %g, limit %g: growth rate %g", delta, c.theta, limit, growth)
			}
		}
	}
}

// meanSquareGrowth simulates two agents without gradients, with one coordinate for each of many
// independent trials, and returns the growth rate of the mean-square gap per message.
func meanSquareGrowth(t *testing.T, s *rng.Stream, theta, delta float64) float64 {
	const plays, messages = 5000, 12
	g := newGame(CHOCO{Theta: theta}, 2, make([]float64, plays))
	g.grad = func(_, _ int, dst, _ []float64) { clear(dst) }
	for k := range plays {
		g.x(0)[k], g.x(1)[k] = 1, -1
	}
	var coords []uint32
	g.broadcasting([][2]int{{0, 1}}, allActive, func(int, int) []uint32 { return coords })
	for it := range int(messages / delta) {
		coords = coords[:0]
		for k := range plays {
			if s.Float64() < delta {
				coords = append(coords, uint32(k))
			}
		}
		g.step(t, it)
	}
	gap := distance(g.x(0), g.x(1))
	return math.Log(gap*gap/(4*plays)) / messages
}
