package algo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
)

// methodRow is a row of golden values: a trajectory of six iterations from zero, computed in
// float64 by an independent program.
type methodRow struct {
	name string
	algo Algorithm
	game func(g *game)
	x    string
	f    float64
	more string // of agent 0, as more reads it
	read func(g *game) []float64
	bits [3]uint64
}

func TestGoldenMethods(t *testing.T) {
	aux := func(name string) func(g *game) []float64 {
		return func(g *game) []float64 { return g.aux(0, name) }
	}
	onPath, onTree := [][2]int{{0, 1}, {1, 2}, {2, 3}}, [][2]int{{0, 1}, {0, 2}, {1, 3}}
	message := func(g *game) []float64 { return values(g.state[0].Edge(1).Vectors[0]) }
	for _, c := range []methodRow{
		{"sgp one-peer exponential", SGP{Regular: true}, onePeer, "1.4801363669 1.4640402368 1.3756516996",
			7.1947443823, "1.4801363669 1.4640402368 1.3756516996", pushedSum, same(2304)},
		{"sgp lopsided", SGP{}, lopsided, "1.5866528379 1.7406925476 1.6390254222", 7.1850647561,
			"1.9039766039 2.0888235953 1.9668234807", pushedSum, same(4608)},
		{"relaysgd path", Relay{N: 4}, on(onPath), "1.0917814437 1.2025082477 1.1586174268", 9.2041117742,
			"3.4055176302 3.8165113239 3.7043433359", message, same(3456)},
		{"relaysgd binary tree", Relay{N: 4}, on(onTree), "1.1343209646 1.2871416264 1.2440968864", 9.3103822478,
			"2.2452320103 2.8839998586 2.9025082160", message, same(3456)},
		{"choco sign", CHOCO{Theta: 0.3}, packed(signOf), "0.9270060340 1.0606771150 1.0277185374", 7.2833552063,
			"0.8946221859 0.8946221859 0.6072493312", aux("xhat"), same(1680)},
		{"choco top-1", CHOCO{Theta: 0.3}, packed(top1), "0.9971736293 1.0335172432 0.9789758094", 7.2661797009,
			"0.5105332268 0.6942389812 0.7270171716", aux("xhat"), [3]uint64{1632, 1632, 4608}},
		{"ef21 top-1", CHOCO{Theta: 0.3, Early: true}, packed(top1), "0.8354454601 0.8879602170 0.8172547130",
			7.2946758390, "0.5312507400 0.7753352686 0.2599725000", aux("xhat"), [3]uint64{1632, 1632, 4608}},
		{"beer mask", BEER{Theta: 0.3}, packed(maskOfT), "1.2322187886 1.2994777336 1.2735316055", 7.2540240642,
			"-1.4452631589 -2.5461002917 -2.7472417929", aux("p"), [3]uint64{6144, 6336, 12288}},
		{"beer top-1", BEER{Theta: 0.3}, packed(top1), "1.0259818026 1.2636393575 1.3757250444", 7.1944178178,
			"-1.2402599600 -2.3472243843 -3.0414407751", aux("p"), [3]uint64{3264, 3264, 9216}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := goldenGame(c.algo)
			c.game(g)
			for it := range 6 {
				g.step(t, it)
			}
			check(t, "x_0", g.x(0), c.x)
			check(t, "state", c.read(g), c.more)
			if f := goldenObjective(mean(4, g.x)); math.Abs(f-c.f) > 1e-9 {
				t.Errorf("F(xbar) = %.10f, want %.10f", f, c.f)
			}
			if g.bits() != c.bits {
				t.Errorf("bits %d, want %d", g.bits(), c.bits)
			}
			if n := g.state[0].Scalars; n != nil && math.Abs(n[0]-1.1999957133) > 1e-9 {
				t.Errorf("w = %.10f", n[0])
			}
		})
	}
}

// DeMo with one chunk, of which two coefficients are sent.
func TestGoldenDeMo(t *testing.T) {
	g := goldenGameAt(DeMo{Keep: 0.9}, 2)
	inDeMo(g, dist.NewTransform[float64]([][2]int{{3, 0}}, 64))
	for it := range 6 {
		g.step(t, it)
	}
	for i := range 4 {
		check(t, fmt.Sprint("x_", i), g.x(i), "2.6000000000 2.4000000000 2.6000000000")
	}
	check(t, "e", g.aux(0, "momentum"), "-0.1012500000 0.0000000000 0.1012500000")
	if f := goldenObjective(mean(4, g.x)); math.Abs(f-5.1131250000) > 1e-9 {
		t.Errorf("F(xbar) = %.10f", f)
	}
	if want := [3]uint64{4896, 4896, 13824}; g.bits() != want {
		t.Errorf("bits %d, want %d", g.bits(), want)
	}
}

// inDeMo sends the two largest coefficients of a transform to all agents.
func inDeMo(g *game, c *dist.Transform[float64]) {
	packedOver(world{n: len(g.state)}.complete(), func(_ int, v []float64) ([]float64, []uint32, dist.Sent) {
		all := make([]float64, len(v))
		c.Forward(all, v)
		order := make([]uint32, len(v))
		for k := range order {
			order[k] = uint32(k)
		}
		slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(math.Abs(all[b]), math.Abs(all[a])) })
		at := slices.Sorted(slices.Values(order[:2]))
		return []float64{all[at[0]], all[at[1]]}, at, dist.Sent{Values: 2, ValueBits: 32, Mask: 2, Dim: len(v),
			DataDependent: true}
	})(g)
	whole := g.prepare
	g.prepare = func(r *Round) {
		whole(r)
		r.Inverse = func(dst, v device.Vector) { c.Inverse(values(dst), values(v)) }
		r.Signs = func(dst, sums, counts device.Vector) { c.Signs(values(dst), values(sums), values(counts)) }
	}
}

// pushedSum is X = w·z of agent 0.
func pushedSum(g *game) []float64 {
	x := slices.Clone(g.x(0))
	for k := range x {
		if s := g.state[0].Scalars; s != nil {
			x[k] *= s[0]
		}
	}
	return x
}

// onePeer sends from i to i + 2^(t mod 2), cyclic, over four agents.
func onePeer(g *game) {
	g.mask = func(int, int, int) []uint32 { return nil }
	g.directed(func(t int) (arcs [][2]int) {
		for i := range 4 {
			arcs = append(arcs, [2]int{i, (i + 1<<(t%2)) % 4})
		}
		return arcs
	})
}

// lopsided sends from i to i+1, and from the even ones also to i+2.
func lopsided(g *game) {
	g.mask = func(int, int, int) []uint32 { return nil }
	g.directed(func(int) [][2]int { return [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}, {2, 0}} })
}

// on exchanges whole vectors over all edges of a graph.
func on(graph [][2]int) func(g *game) {
	return func(g *game) {
		g.mask = func(int, int, int) []uint32 { return nil }
		g.edges = func(int) [][2]int { return graph }
		g.connected(graph)
	}
}

// compression is what a compressor makes of v in iteration t: values, their coordinates (nil: all)
// and the numbers that travel besides, for the ledger.
type compression func(t int, v []float64) (values []float64, coords []uint32, sent dist.Sent)

// packed compresses over the ring, on which all broadcast.
func packed(q compression) func(g *game) { return packedOver(ring4, q) }

// packedOver compresses over a graph.
func packedOver(graph [][2]int, q compression) func(g *game) {
	return func(g *game) {
		g.broadcasting(graph, allActive, everything)
		type key struct{ t, agent, which int }
		coords := map[key]device.Index{}
		last := dist.Sent{}
		whole := g.prepare
		g.prepare = func(r *Round) {
			whole(r)
			for k := range r.Links {
				r.Links[k].Coords = make([]device.Index, g.algo.Traits().MessagesPerIteration())
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
				coords[key{r.T, r.Self, which}] = index
				return Compressed{Vectors: []device.Vector{b}, Index: index}, nil
			}
		}
		g.heard = func(r *Round) {
			for k := range r.Links {
				for which := range r.Links[k].Coords {
					r.Links[k].Coords[which] = coords[key{r.T, r.Links[k].Peer, which}]
				}
			}
		}
		g.coded = func(_ *Link, which int) dist.Sent {
			sent := last
			sent.Indices = which == 0 || sent.DataDependent // a mask is the same for both messages
			return sent
		}
	}
}

// signOf is the sign of each coordinate, times the mean magnitude.
func signOf(_ int, v []float64) ([]float64, []uint32, dist.Sent) {
	scale, out := 0.0, make([]float64, len(v))
	for _, x := range v {
		scale += math.Abs(x) / float64(len(v))
	}
	for k, x := range v {
		out[k] = scale
		if x < 0 {
			out[k] = -scale
		}
	}
	return out, nil, dist.Sent{Values: len(v), ValueBits: 1, ExtraBits: 32, Mask: len(v), Dim: len(v)}
}

// top1 is the largest coordinate, the first of equal ones.
func top1(_ int, v []float64) ([]float64, []uint32, dist.Sent) {
	at := 0
	for k, x := range v {
		if math.Abs(x) > math.Abs(v[at]) {
			at = k
		}
	}
	return []float64{v[at]}, []uint32{uint32(at)}, dist.Sent{Values: 1, ValueBits: 32, Mask: 1, Dim: len(v),
		DataDependent: true}
}

// maskOfT is the coordinates of the mask of iteration t.
func maskOfT(t int, v []float64) ([]float64, []uint32, dist.Sent) {
	a, b := t%3, (t+1)%3
	a, b = min(a, b), max(a, b)
	return []float64{v[a], v[b]}, []uint32{uint32(a), uint32(b)}, dist.Sent{Values: 2, ValueBits: 32, Mask: 2,
		Dim: len(v)}
}

// With exact gradients over two thousand iterations, the largest error of a coordinate.
func TestLongRuns(t *testing.T) {
	path := [][2]int{{0, 1}, {1, 2}, {2, 3}}
	for _, c := range []struct {
		algo Algorithm
		game func(g *game)
		want float64
	}{
		{DSGT{}, ringed, 0},
		{BEER{Theta: 0.3}, packed(maskOfT), 0},
		{BEER{Theta: 0.3}, packed(top1), 0},
		{Relay{N: 4}, on(path), 0},
		{SGP{Regular: true}, onePeer, 0.24},
		{CHOCO{Theta: 0.3}, packed(top1), 0.70},
		{CHOCO{Theta: 0.3}, packed(signOf), 0.70},
		{CHOCO{Theta: 0.3, Early: true}, packed(top1), 0.87},
		{DIGing{Descent: Descent{Opt: GTAdam{0.9, 0.99, 1e-8, 1e6}, Corrected: true}}, ringed, 8e-3},
	} {
		g := goldenGame(c.algo)
		c.game(g)
		far := alternatingError(t, g)
		if math.Abs(far-c.want) > 0.006 || c.want == 0 && far > 1e-12 {
			t.Errorf("%s %+v ends %.4g from the optimum, want %.2g", c.algo.Name(), c.algo, far, c.want)
		}
	}
}

// With the identity and theta = 1 BEER is DIGing on the static graph.
func TestBEERIdentityIsDIGing(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		w.k = 0
		a := w.play(BEER{Theta: 1}, q, 0.05, 0).broadcasting(w.graph, allActive, everything)
		b := w.static(DIGing{}, q, 0.05, 0, always)
		a.grad, b.grad = noisy(q, w.seed, 0.3), noisy(q, w.seed, 0.3)
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

// BEER keeps SH = W·H and SG = W·G for every mask and every set of active agents.
func TestBEERInvariants(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.play(BEER{Theta: 0.2}, q, 0.02, 0)
		chatter(g, w)
		weights := mixing(w.graph, w.n)
		for it := range 200 {
			g.step(t, it)
			for _, names := range [][2]string{{"h", "sh"}, {"g", "sg"}} {
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

// On irregular directed graphs the weights sum to n, and the sum of X = w·z moves by -alpha times
// the sum of the gradients.
func TestSGPKeepsSums(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.play(SGP{}, q, 0.02, 0)
		pushing(g, w)
		g.grad = func(t, i int, dst, _ []float64) { // of any point: an agent of small weight takes large steps
			s := rng.New(w.seed, "gradients", uint64(t), uint64(i))
			for k := range dst {
				dst[k] = s.Norm()
			}
		}
		want, u := make([]float64, w.d), make([]float64, w.d)
		for it := range 200 {
			for i := range w.n {
				g.grad(it, i, u, g.x(i))
				for k := range u {
					want[k] -= 0.02 * u[k]
				}
			}
			g.step(t, it)
			sum, weights := make([]float64, w.d), 0.0
			for i, s := range g.state {
				weights += s.Scalars[sgpWeight]
				for k, v := range g.x(i) {
					sum[k] += s.Scalars[sgpWeight] * v
				}
			}
			if e := distance(sum, want); e > 1e-12 || math.Abs(weights-float64(w.n)) > 1e-12 {
				t.Fatalf("iteration %d: the sum of X is %g off, the weights sum to %v of %d agents", it, e, weights,
					w.n)
			}
		}
	})
}

// Without gradients all agents of a tree have the exact mean of the start after as many iterations
// as the tree is wide, since each model has then reached each agent once.
func TestRelaySumIsExact(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, _ quadratics) {
		g := w.play(Relay{N: w.n}, quadratics{}, 0, 0)
		treelike(g, w)
		s := rng.New(w.seed, "start")
		for i := range w.n {
			for k := range g.x(i) {
				g.x(i)[k] = s.Norm()
			}
		}
		start := make([][]float64, w.n)
		for i := range start {
			start[i] = slices.Clone(g.x(i))
		}
		g.grad = func(_, _ int, dst, _ []float64) { clear(dst) }
		want := mean(w.n, func(i int) []float64 { return start[i] })
		for it := range w.n {
			for i := range w.n { // constants in place of models
				copy(g.x(i), start[i])
			}
			g.step(t, it)
		}
		for i := range w.n {
			if e := distance(g.x(i), want); e > 1e-14 {
				t.Errorf("agent %d is %g from the mean", i, e)
			}
		}
	})
}

// A lost message of RelaySGD is empty in its iteration and is not relayed.
func TestRelayLoses(t *testing.T) {
	g := newGame(Relay{N: 3}, 3, []float64{0})
	path := [][2]int{{0, 1}, {1, 2}}
	g.grad = func(_, _ int, dst, _ []float64) { clear(dst) }
	on(path)(g)
	g.lost = func(t, i, j int) bool { return t == 3 && i == 1 }
	for it := range 5 {
		for i := range 3 {
			g.x(i)[0] = float64(3 * (i + 1))
		}
		g.step(t, it)
		want := map[int][3]int{0: {1, 2, 1}, 1: {2, 2, 2}, 2: {2, 2, 2}, 3: {2, 1, 0}, 4: {1, 2, 2}}[it]
		for i, s := range g.state {
			n := 0
			for _, m := range s.Edges {
				n += m.Count
			}
			if n != want[i] {
				t.Errorf("after iteration %d agent %d has %d models of others, want %d", it, i, n, want[i])
			}
		}
	}
}

// powerGame is the golden problem with six coordinates as one 2×3 matrix, on the whole ring.
func powerGame(a PowerGossip) *game {
	g := newGame(a, 4, make([]float64, 6))
	g.alpha = 0.1
	ringed(g)
	g.connected(ring4)
	q := goldenQuadratics(6)
	q.factor = func(t int) float64 { return 1 + 0.1*sign(t) }
	g.grad = q.grad
	return g
}

func TestPowerGossipGolden(t *testing.T) {
	g := powerGame(PowerGossip{Theta: 1, Tensors: []Tensor{{Rows: 2, Cols: 3}},
		Draw: func(dst []float32, _, i, j, _ int) {
			edge := slices.Index(ring4, [2]int{i, j})
			for k := range dst {
				dst[k] = float32(1 + (edge+k)%2)
			}
		}})
	for it := range 6 {
		g.step(t, it)
	}
	check(t, "x_0", g.x(0)[:3], "1.2292031885 1.6318468067 1.5877540747")
	m := g.state[0].Edge(1).Vectors
	both := slices.Concat(values(m[0]), values(m[1]))
	check(t, "a and s of the first edge", both[:3], "0.1164329834 1.0539478067 -0.1821345091")
	check(t, "s of the first edge", both[2:], "-0.1821345091 -0.1818682472 -0.9663079019")
	f := 0.0
	for i := range 4 {
		for k, v := range mean(4, g.x) {
			h, b := 1+float64((i+2*k)%3)/2, float64(i+1)-0.5*float64(k)*sign(i)
			f += h * (v - b) * (v - b) / 8
		}
	}
	if math.Abs(f-26.2522903029) > 1e-9 || g.bits() != same(3840) {
		t.Errorf("F(xbar) = %.10f, bits %d", f, g.bits())
	}
	for i, s := range g.state {
		for _, e := range s.Edges {
			for k, v := range e.Vectors {
				if other := g.state[e.Peer].Edge(i).Vectors[k]; !slices.Equal(values(v), values(other)) {
					t.Errorf("the ends of edge (%d,%d) have different directions", i, e.Peer)
				}
			}
		}
	}
}

// drawn gives directions of normal numbers.
func drawn(seed uint64) func(dst []float32, t, i, j, block int) {
	return func(dst []float32, t, i, j, block int) {
		s := rng.New(seed, "directions", uint64(t), uint64(i), uint64(j), uint64(block))
		for k := range dst {
			dst[k] = float32(s.Norm())
		}
	}
}

// Without gradients the agents come to agree on the mean of the start; two whose difference has
// rank 1 agree after two exchanges with Theta·w = 1/2.
func TestPowerGossipAgrees(t *testing.T) {
	s := rng.New(3, "start")
	a := PowerGossip{Theta: 1, Tensors: []Tensor{{Rows: 3, Cols: 2}, {Offset: 6, Rows: 2},
		{Offset: 8, Rows: 2, Cols: 3}}, Draw: drawn(1)}
	g := newGame(a, 4, make([]float64, 14))
	ringed(g)
	g.connected(ring4)
	g.grad = func(_, _ int, dst, _ []float64) { clear(dst) }
	for i := range 4 {
		for k := range g.x(i) {
			g.x(i)[k] = s.Norm()
		}
	}
	want := mean(4, g.x)
	for it := range 400 {
		g.step(t, it)
		if e := distance(want, mean(4, g.x)); e > 1e-12 {
			t.Fatalf("iteration %d: the mean moved by %g", it, e)
		}
	}
	for i := range 4 {
		if e := distance(g.x(i), want); e > 1e-12 {
			t.Errorf("agent %d is %g from the mean", i, e)
		}
	}
	pair := newGame(PowerGossip{Theta: 1, Tensors: []Tensor{{Rows: 2, Cols: 3}}, Draw: drawn(2)}, 2, make([]float64, 6))
	pair.edges = func(int) [][2]int { return [][2]int{{0, 1}} }
	pair.connected([][2]int{{0, 1}})
	pair.grad = g.grad
	for r := range 2 {
		for c := range 3 {
			pair.x(0)[3*r+c] = float64(r+1) * float64(c-2)
		}
	}
	for it := range 2 {
		pair.step(t, it)
	}
	if e := distance(pair.x(0), pair.x(1)); e > 1e-14 {
		t.Errorf("two agents of a difference of rank 1 are %g apart after two exchanges", e)
	}
}
