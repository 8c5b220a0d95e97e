package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
)

// Random trees, agents and noisy gradients: an agent's model is the mean of the steps h of all agents,
// each as many iterations old as its way here is long but one, and x^0 where that was before the
// first.
func TestRelayIsItsDelays(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		const alpha = 0.05
		g := w.play(Relay{N: w.n}, q, alpha, 0)
		treelike(g, w)
		g.grad = noisy(q, w.seed, 0.3)
		away := distances(g.edges(0), w.n)
		x, start := make([][]float64, w.n), make([][]float64, w.n)
		for i := range x {
			x[i], start[i] = slices.Clone(g.x(i)), slices.Clone(g.x(i))
		}
		var steps [][][]float64 // by iteration, agent
		for it := range 60 {
			h := zeros(w.n, w.d)
			for i := range w.n {
				g.grad(it, i, h[i], x[i])
				for k := range h[i] {
					h[i][k] = x[i][k] - alpha*h[i][k]
				}
			}
			steps = append(steps, h)
			x = zeros(w.n, w.d)
			for i := range w.n {
				for j := range w.n {
					from := start[i]
					if late := max(0, away[i][j]-1); late <= it {
						from = steps[it-late][j]
					}
					for k, v := range from {
						x[i][k] += v / float64(w.n)
					}
				}
			}
			g.step(t, it)
			for i := range w.n {
				if e := distance(x[i], g.x(i)); e > 1e-12 {
					t.Fatalf("iteration %d, agent %d: differ by %g", it, i, e)
				}
			}
		}
	})
}

// distances returns the lengths of all ways, by as many rounds of relaxation as there are agents.
func distances(graph [][2]int, n int) [][]int {
	away := make([][]int, n)
	for i := range away {
		away[i] = slices.Repeat([]int{n}, n)
		away[i][i] = 0
	}
	for range n {
		for _, e := range graph {
			for i := range n {
				away[i][e[0]] = min(away[i][e[0]], away[i][e[1]]+1)
				away[i][e[1]] = min(away[i][e[1]], away[i][e[0]]+1)
			}
		}
	}
	return away
}

// BEER in the printed order, over random graphs, masks and active agents: each agent keeps the public
// copies of all, not sums of them. The algorithm is run with masks that are known beforehand, as those
// of randk are, and with masks that follow from the vector; both have the same bits.
func TestBEERIsItsPrintedOrder(t *testing.T) {
	const alpha, theta = 0.02, 0.2
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g, known := w.play(BEER{Theta: theta}, q, alpha, 0), w.play(BEER{Theta: theta}, q, alpha, 0)
		for _, one := range []*game{g, known} {
			chatter(one, w)
			one.grad = noisy(q, w.seed, 0.3)
		}
		whole := known.prepare
		known.prepare = func(r *Round) {
			whole(r)
			r.Picks = func(int) device.Index { at, _ := known.index(w.ownMask(r.T, r.Self)); return at }
		}
		weights := mixing(w.graph, w.n)
		x, tracker, grad := zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n, w.d)
		copies, trackers := zeros(w.n, w.d), zeros(w.n, w.d)
		for i := range w.n {
			copy(x[i], g.x(i))
		}
		for it := range 100 {
			send := func(public, of [][]float64) {
				for i := range w.n {
					if (it+i)%2 != 0 {
						continue
					}
					at := w.ownMask(it, i)
					for k := range w.d {
						if at == nil || slices.Contains(at, uint32(k)) {
							public[i][k] = of[i][k]
						}
					}
				}
			}
			send(copies, x)
			for i := range w.n { // V = V - old gradient + new gradient
				old := slices.Clone(grad[i])
				g.grad(it, i, grad[i], x[i])
				for k := range w.d {
					tracker[i][k] += grad[i][k] - old[k]
				}
			}
			send(trackers, tracker)
			for i := range w.n {
				for k := range w.d {
					pull, pullV := 0.0, 0.0
					for j := range w.n {
						pull += weights[i][j] * (copies[j][k] - copies[i][k])
						pullV += weights[i][j] * (trackers[j][k] - trackers[i][k])
					}
					x[i][k] += theta*pull - alpha*tracker[i][k]
					tracker[i][k] += theta * pullV
				}
			}
			g.step(t, it)
			known.step(t, it)
			for i := range w.n {
				if e := distance(x[i], g.x(i)); e > 1e-12 {
					t.Fatalf("iteration %d, agent %d: differ by %g", it, i, e)
				}
				if !slices.Equal(g.x(i), known.x(i)) || !slices.Equal(g.aux(i, "p"), known.aux(i, "p")) {
					t.Fatalf("iteration %d, agent %d: with a known mask it has other bits", it, i)
				}
			}
		}
	})
}

// cosines is a transform by its definition: of each chunk the coordinates by rows, and its shape.
type cosines struct {
	at     [][]int
	shapes [][2]int
}

// element is that of the transform of a chunk at frequency u and number i.
func (c cosines) element(chunk, u, i int) float64 {
	basis := func(n, u, i int) float64 {
		if u == 0 {
			return math.Sqrt(1 / float64(n))
		}
		return math.Sqrt(2/float64(n)) * math.Cos(math.Pi*(float64(i)+0.5)*float64(u)/float64(n))
	}
	rows, cols := c.shapes[chunk][0], c.shapes[chunk][1]
	return basis(rows, u/cols, i/cols) * basis(cols, u%cols, i%cols)
}

// largest lists the chunks and frequencies of the two largest coefficients of v, and these.
func (c cosines) largest(v []float64) (which [][2]int, values []float64) {
	for chunk, at := range c.at {
		for u := range at {
			sum := 0.0
			for i, k := range at {
				sum += c.element(chunk, u, i) * v[k]
			}
			which, values = append(which, [2]int{chunk, u}), append(values, sum)
			for n := len(values) - 1; n > 0 && math.Abs(values[n]) > math.Abs(values[n-1]); n-- {
				values[n], values[n-1] = values[n-1], values[n]
				which[n], which[n-1] = which[n-1], which[n]
			}
			which, values = which[:min(2, len(which))], values[:min(2, len(values))]
		}
	}
	return which, values
}

// DeMo on five agents, a matrix of 4×6 in chunks of 2×3 and a vector of 6 in two chunks: the transform
// by its definition, coefficient by coefficient.
func TestDeMoIsItsDefinition(t *testing.T) {
	const n, d, alpha, keep = 5, 30, 0.03, 0.9
	c := cosines{at: [][]int{{0, 1, 2, 6, 7, 8}, {3, 4, 5, 9, 10, 11}, {12, 13, 14, 18, 19, 20},
		{15, 16, 17, 21, 22, 23}, {24, 25, 26}, {27, 28, 29}},
		shapes: [][2]int{{2, 3}, {2, 3}, {2, 3}, {2, 3}, {1, 3}, {1, 3}}}
	g := newGame(DeMo{Keep: keep}, n, make([]float64, d))
	g.alpha = alpha
	s := rng.New(8, "quadratics")
	g.grad = noisy(randomQuadratics(&s, n, d), 8, 0.3)
	inDeMo(g, dist.NewTransform[float64]([][2]int{{4, 6}, {6, 0}}, 3))
	x, e := make([]float64, d), zeros(n, d)
	for it := range 60 {
		sums, senders := map[[2]int]float64{}, map[[2]int]int{}
		for i := range n {
			grad := make([]float64, d)
			g.grad(it, i, grad, x)
			for k := range d {
				e[i][k] = keep*e[i][k] + alpha*grad[k]
			}
			which, coefficients := c.largest(e[i])
			for m, w := range which {
				for at, k := range c.at[w[0]] {
					e[i][k] -= c.element(w[0], w[1], at) * coefficients[m]
				}
				sums[w] += coefficients[m]
				senders[w]++
			}
		}
		for chunk, at := range c.at {
			step, most := make([]float64, len(at)), 0.0
			for i := range at {
				for u := range at {
					if w := [2]int{chunk, u}; senders[w] > 0 {
						step[i] += c.element(chunk, u, i) * sums[w] / float64(senders[w])
					}
				}
				most = max(most, math.Abs(step[i]))
			}
			for i, k := range at {
				if math.Abs(step[i]) > 1e-7*most {
					x[k] -= math.Copysign(alpha, step[i])
				}
			}
		}
		g.step(t, it)
		for i := range n {
			if away := max(distance(x, g.x(i)), distance(e[i], g.aux(i, "momentum"))); away > 1e-10 {
				t.Fatalf("iteration %d, agent %d: differ by %g", it, i, away)
			}
		}
	}
}
