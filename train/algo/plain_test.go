package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/dist"
	"fspda/internal/rng"
)

// plainSteps is local optimizers in plain loops: momentum mu, or AdamW if mu is negative.
type plainSteps struct {
	mu, decay float64
	m, v      [][]float64
	calls     []int
}

func newPlainSteps(w world, mu float64) *plainSteps {
	return &plainSteps{mu: mu, m: zeros(w.n, w.d), v: zeros(w.n, w.d), calls: make([]int, w.n)}
}

// descent is the same for an algorithm.
func (o *plainSteps) descent() Descent {
	if o.mu < 0 {
		o.decay = someDecay.Rate
		return adamW(false)
	}
	return heavyBall(o.mu)
}

// direct turns the gradient of agent i at x into its direction.
func (o *plainSteps) direct(i int, g, x []float64) []float64 {
	u := make([]float64, len(g))
	o.calls[i]++
	for k := range u {
		if o.mu >= 0 {
			o.m[i][k] = o.mu*o.m[i][k] + g[k]
			u[k] = o.m[i][k]
			continue
		}
		o.m[i][k] = 0.9*o.m[i][k] + 0.1*g[k]
		o.v[i][k] = 0.99*o.v[i][k] + 0.01*g[k]*g[k]
		m, v := o.m[i][k]/(1-math.Pow(0.9, float64(o.calls[i]))), o.v[i][k]/(1-math.Pow(0.99, float64(o.calls[i])))
		u[k] = m / (math.Sqrt(v) + 1e-8)
		if !slices.Contains(someDecay.Except, uint32(k)) {
			u[k] += o.decay * x[k]
		}
	}
	return u
}

// sameModels compares the models of a game with plain ones.
func sameModels(t *testing.T, it int, g *game, x [][]float64) {
	t.Helper()
	for i := range x {
		if e := distance(x[i], g.x(i)); e > 1e-11 {
			t.Fatalf("iteration %d, agent %d: differ by %g", it, i, e)
		}
	}
}

// paired selects pairs among the edges of iteration t.
func (w world) paired(t int) (pairs [][2]int) {
	taken := map[int]bool{}
	for _, e := range w.edges(t) {
		if !taken[e[0]] && !taken[e[1]] {
			taken[e[0]], taken[e[1]] = true, true
			pairs = append(pairs, e)
		}
	}
	return pairs
}

// NoLoCo, GASLoC and SPARTA agent by agent, with momentum and with AdamW inside of rounds, on random
// pairs, edges and masks.
func TestOuterStepsAreTheirRecursions(t *testing.T) {
	const alpha, h, rate, mu, pull, gamma = 0.03, 3, 0.8, 0.4, 0.6, 0.3
	for _, inner := range []float64{0, 0.6, -1} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			steps := [3]*plainSteps{newPlainSteps(w, inner), newPlainSteps(w, inner), newPlainSteps(w, inner)}
			d := steps[0].descent()
			steps[1].decay, steps[2].decay = steps[0].decay, steps[0].decay
			games := [3]*game{outerWorld(NoLoCo{h, rate, mu, pull, d}, w, q, h),
				outerWorld(GASLoC{h, rate, mu, gamma, d}, w, q, h), outerWorld(SPARTA{h, d}, w, q, h)}
			games[0].edges, games[2].mask = w.paired, func(t, _, _ int) []uint32 { return w.mask(t, 0, 0) }
			atEnds(games[0], h)
			x, phi, m := [3][][]float64{}, [2][][]float64{}, [2][][]float64{}
			for a := range games {
				games[a].alpha = alpha
				x[a] = zeros(w.n, w.d)
			}
			for a := range phi {
				phi[a], m[a] = zeros(w.n, w.d), zeros(w.n, w.d)
			}
			for it := range 30 {
				for a, g := range games {
					for i := range w.n {
						gi := make([]float64, w.d)
						g.grad(it, i, gi, x[a][i])
						for k, u := range steps[a].direct(i, gi, x[a][i]) {
							x[a][i][k] -= alpha * u
						}
					}
				}
				if (it+1)%h == 0 {
					pairs, edges := games[0].edges(it), games[1].edges(it)
					noLoCoStep(x[0], phi[0], m[0], pairs, rate, mu, pull)
					gaslocStep(x[1], phi[1], m[1], edges, rate, mu, gamma)
					average := mean(w.n, func(i int) []float64 { return x[2][i] })
					for k := range w.d {
						if c := w.mask(it, 0, 0); c == nil || slices.Contains(c, uint32(k)) {
							for i := range w.n {
								x[2][i][k] = average[k]
							}
						}
					}
				}
				for a, g := range games {
					g.step(t, it)
					sameModels(t, it, g, x[a])
				}
			}
		})
	}
}

func noLoCoStep(x, phi, m [][]float64, pairs [][2]int, rate, mu, pull float64) {
	partner := make([]int, len(x))
	for i := range partner {
		partner[i] = i
	}
	for _, p := range pairs {
		partner[p[0]], partner[p[1]] = p[1], p[0]
	}
	next := zeros(len(x), len(x[0]))
	for i, j := range partner {
		for k := range x[i] {
			moved := (x[i][k] - phi[i][k] + x[j][k] - phi[j][k]) / 2
			m[i][k] = mu*m[i][k] + rate*moved - pull*(phi[i][k]-(phi[i][k]+phi[j][k])/2)
			next[i][k] = phi[i][k] + m[i][k]
		}
	}
	for i := range x {
		copy(phi[i], next[i])
		copy(x[i], next[i])
	}
}

// gaslocStep keeps the y of the round before in past.
func gaslocStep(x, phi, past [][]float64, edges [][2]int, rate, mu, gamma float64) {
	y := zeros(len(x), len(x[0]))
	for i := range x {
		for k := range x[i] {
			y[i][k] = phi[i][k] + rate*(x[i][k]-phi[i][k])
			x[i][k] = y[i][k] + mu*(y[i][k]-past[i][k])
		}
	}
	for i, row := range laplacian(edges, y) {
		for k, l := range row {
			x[i][k] -= gamma * l
		}
		copy(phi[i], x[i])
		copy(past[i], y[i])
	}
}

// Push-sum by its matrices, with a random number of receivers of each agent: X and w apart.
func TestSGPIsPushSum(t *testing.T) {
	const alpha = 0.02
	for _, inner := range []float64{0, 0.6, -1} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			steps := newPlainSteps(w, inner)
			g := w.play(SGP{Descent: steps.descent()}, q, alpha, 0)
			unmasked(g, w)
			arcs := func(t int) (arcs [][2]int) {
				for j := range w.n {
					s := rng.New(w.seed, "arcs", uint64(t), uint64(j))
					for i := range w.n {
						if i != j && s.IntN(3) == 0 {
							arcs = append(arcs, [2]int{j, i})
						}
					}
				}
				return arcs
			}
			g.directed(arcs)
			g.grad = noisy(q, w.seed, 0.3)
			z, weight := zeros(w.n, w.d), slices.Repeat([]float64{1}, w.n)
			for it := range 60 {
				share, sums, weights := make([]float64, w.n), zeros(w.n, w.d), make([]float64, w.n)
				for _, a := range arcs(it) {
					share[a[0]]++
				}
				all := arcs(it)
				for i := range w.n {
					share[i] = 1 / (1 + share[i])
					all = append(all, [2]int{i, i})
				}
				pushed := zeros(w.n, w.d)
				for i := range w.n {
					gi := make([]float64, w.d)
					g.grad(it, i, gi, z[i])
					for k, u := range steps.direct(i, gi, z[i]) {
						pushed[i][k] = weight[i]*z[i][k] - alpha*u
					}
				}
				for _, a := range all {
					weights[a[1]] += share[a[0]] * weight[a[0]]
					for k, v := range pushed[a[0]] {
						sums[a[1]][k] += share[a[0]] * v
					}
				}
				weight = weights
				for i := range w.n {
					for k := range w.d {
						z[i][k] = sums[i][k] / weight[i]
					}
				}
				g.step(t, it)
				sameModels(t, it, g, z)
			}
		})
	}
}

// CHOCO and EF21 gossip with the public copies of all agents in place of sums, on random graphs, with
// signs, the largest coordinate and everything.
func TestCHOCOIsItsCopies(t *testing.T) {
	const alpha, theta = 0.02, 0.15
	all := func(_ int, v []float64) ([]float64, []uint32, dist.Sent) { return slices.Clone(v), nil, dist.Sent{} }
	for _, inner := range []float64{0, 0.6, -1} {
		for n, q := range []compression{signOf, top1, all} {
			forWorlds(t, func(t *testing.T, w world, objectives quadratics) {
				steps, early := newPlainSteps(w, inner), (w.seed+uint64(n))%2 == 0
				g := w.play(CHOCO{Theta: theta, Early: early, Descent: steps.descent()}, objectives, alpha, 0)
				packedOver(w.graph, q)(g)
				g.grad = noisy(objectives, w.seed, 0.3)
				weights, x, copies := mixing(w.graph, w.n), zeros(w.n, w.d), zeros(w.n, w.d)
				send := func(it int) {
					for i := range w.n {
						apart := slices.Clone(x[i])
						for k := range apart {
							apart[k] -= copies[i][k]
						}
						values, at, _ := q(it, apart)
						for k, v := range values {
							if at == nil {
								copies[i][k] += v
							} else {
								copies[i][at[k]] += v
							}
						}
					}
				}
				for it := range 60 {
					gradients := zeros(w.n, w.d)
					for i := range w.n {
						g.grad(it, i, gradients[i], x[i])
					}
					if early {
						send(it)
					}
					for i := range w.n {
						for k, u := range steps.direct(i, gradients[i], x[i]) {
							x[i][k] -= alpha * u
						}
					}
					if !early {
						send(it)
					}
					for i := range w.n {
						for j := range w.n {
							for k := range w.d {
								x[i][k] += theta * weights[i][j] * (copies[j][k] - copies[i][k])
							}
						}
					}
					g.step(t, it)
					sameModels(t, it, g, x)
				}
			})
		}
	}
}

// direction is the pair a, s of a matrix on an edge, in plain loops.
type direction struct{ a, s []float64 }

// Sketches by their definition, of three tensors of which two are matrices, on random active edges: of
// PowerGossip after the local step, and of FSPDA-SA before it.
func TestSketchesAreTheirDefinition(t *testing.T) {
	const alpha, eta, theta, gamma, beta = 0.02, 0.01, 0.8, 0.2, 0.7
	blocks := []Tensor{{Rows: 3, Cols: 2}, {Offset: 6, Rows: 2}, {Offset: 8, Rows: 2, Cols: 3}}
	for _, dual := range []bool{false, true} {
		forWorlds(t, func(t *testing.T, w world, _ quadratics) {
			w.d, w.k = 14, 0
			s := rng.New(w.seed, "quadratics")
			q := randomQuadratics(&s, w.n, w.d)
			steps := newPlainSteps(w, 0.4)
			power := PowerGossip{Theta: theta, Tensors: blocks, Draw: drawn(w.seed), Descent: steps.descent()}
			g := w.play(power, q, alpha, eta)
			if dual {
				g = w.play(SketchedSA{gamma, beta, power}, q, alpha, eta)
			}
			g.connected(w.graph)
			g.grad = noisy(q, w.seed, 0.3)
			x, lambda := zeros(w.n, w.d), zeros(w.n, w.d)
			edges := plainEdges{draw: drawn(w.seed), blocks: blocks, count: map[[2]int]int{},
				of: map[[2]int][]direction{}}
			for it := range 60 {
				var told [][]float64
				active := g.edges(it)
				if dual {
					told = edges.differences(x, active, func(int, int) float64 { return 1 })
				}
				for i := range w.n {
					gi := make([]float64, w.d)
					g.grad(it, i, gi, x[i])
					for k, u := range steps.direct(i, gi, x[i]) {
						x[i][k] -= alpha*u + eta*lambda[i][k]*map[bool]float64{true: 1}[dual]
					}
				}
				gain := gamma
				if !dual {
					weights := mixing(active, w.n)
					told, gain = edges.differences(x, active, func(i, j int) float64 { return weights[i][j] }), theta
				}
				for i := range w.n {
					for k, v := range told[i] {
						x[i][k] -= gain * v
						lambda[i][k] += beta * v
					}
				}
				g.step(t, it)
				sameModels(t, it, g, x)
			}
		})
	}
}

// plainEdges is the memory of all edges, once for both ends.
type plainEdges struct {
	draw   func(dst []float32, t, i, j, block int)
	blocks []Tensor
	count  map[[2]int]int
	of     map[[2]int][]direction
}

// differences returns Σ w·(what the sketches tell of own - other) of each agent.
func (p plainEdges) differences(x [][]float64, active [][2]int, weight func(i, j int) float64) [][]float64 {
	told := zeros(len(x), len(x[0]))
	for _, e := range active {
		i, j := min(e[0], e[1]), max(e[0], e[1])
		if p.of[e] == nil {
			for _, b := range p.blocks {
				p.of[e] = append(p.of[e], direction{make([]float64, b.Rows), make([]float64, b.Cols)})
			}
		}
		for n, b := range p.blocks {
			apart := func(r, c int) float64 {
				at := b.Offset + r*max(1, b.Cols) + c
				return x[i][at] - x[j][at]
			}
			d := p.of[e][n]
			if b.Cols > 0 && p.count[e]%2 == 0 {
				p.unit(d.a, e, n)
				for c := range d.s {
					d.s[c] = 0
					for r := range d.a {
						d.s[c] += apart(r, c) * d.a[r]
					}
				}
			} else if b.Cols > 0 {
				p.unit(d.s, e, n)
				for r := range d.a {
					d.a[r] = 0
					for c := range d.s {
						d.a[r] += apart(r, c) * d.s[c]
					}
				}
			}
			for r := range b.Rows {
				for c := range max(1, b.Cols) {
					v := apart(r, c)
					if b.Cols > 0 {
						v = d.a[r] * d.s[c]
					}
					told[i][b.Offset+r*max(1, b.Cols)+c] += weight(i, j) * v
					told[j][b.Offset+r*max(1, b.Cols)+c] -= weight(i, j) * v
				}
			}
		}
		p.count[e]++
	}
	return told
}

// unit divides a direction by its norm, or draws it.
func (p plainEdges) unit(v []float64, e [2]int, block int) {
	norm := distance(v, make([]float64, len(v)))
	if norm == 0 {
		host := make([]float32, len(v))
		p.draw(host, p.count[e], min(e[0], e[1]), max(e[0], e[1]), block)
		for k, h := range host {
			v[k] = float64(h)
		}
		norm = distance(v, make([]float64, len(v)))
	}
	for k := range v {
		v[k] /= norm
	}
}
