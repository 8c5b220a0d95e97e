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

// entry is a row of the table of all algorithms: how to run one in a world.
type entry struct {
	algo   Algorithm
	mu     float64          // its momentum
	static bool             // needs the whole graph
	when   func(t int) bool // at which iterations; nil: always
	exact  bool             // reaches the optimum with exact gradients, for any data distribution
	// the mean model moves by -alpha times the mean direction, in each iteration
	follow bool
	step   func(t int) float64 // multiple of alpha; nil: 1
	whole  bool                // a lost message is an error
	// AdamW: with a constant step it ends near the optimum only
	adaptive bool
	dress    func(g *game, w world)
}

// table has a row for each algorithm, and for each of its forms with other auxiliary vectors.
var table = []entry{
	{algo: SGD{}, follow: true, static: true},
	{algo: DSGD{Theta: 0.2}, follow: true},
	{algo: DSGD{Metropolis: true, ATC: true, Descent: heavyBall(0.5)}, mu: 0.5, follow: true},
	{algo: SA{Gamma: 0.25, Beta: 1}, exact: true, follow: true},
	{algo: SA{Gamma: 0.25, Beta: 1, Descent: heavyBall(0.5)}, mu: 0.5, exact: true, follow: true},
	{algo: SA{Gamma: 0.25, Beta: 1, Stale: true}},
	{algo: STORM{Gamma: 0.25, Beta: 1, AX: 0.3, ALambda: 0.3}, exact: true},
	{algo: STORM{Gamma: 0.25, Beta: 1, AX: 0.1, ALambda: 0.4}, exact: true},
	{algo: STORM{Gamma: 0.25, Beta: 1, AX: 0.3, ALambda: 0.2, Lagged: true, ZeroStart: true}, exact: true},
	{algo: Scaffnew{P: 0.25, C: 1}, static: true, when: coin(0.25), exact: true, follow: true},
	{algo: Scaffnew{P: 0.25, C: 0.6, Descent: heavyBall(0.5)}, mu: 0.5, static: true, when: coin(0.25), exact: true,
		follow: true},
	{algo: LED{Tau: 4}, static: true, when: every(4), exact: true, follow: true},
	{algo: LED{Tau: 4, Descent: heavyBall(0.5)}, mu: 0.5, static: true, when: every(4), exact: true, follow: true},
	{algo: KGT{K: 4, EtaS: 1}, static: true, when: every(4), exact: true, follow: true},
	{algo: KGT{K: 4, EtaS: 1, Descent: heavyBall(0.5)}, mu: 0.5, static: true, when: every(4), exact: true,
		follow: true},
	{algo: KGT{K: 3, EtaS: 0.6}, static: true, when: every(3), exact: true},
	{algo: DIGing{}, exact: true, follow: true},
	{algo: DIGing{Descent: heavyBall(0.5)}, mu: 0.5, exact: true, follow: true},
	{algo: DIGing{Descent: Descent{Opt: HeavyBall{0.5}, Corrected: true}}, mu: 0.5, exact: true, follow: true},
	{algo: NEXT{Descent: Descent{Opt: HeavyBall{0.5}, Corrected: true}}, mu: 0.5, exact: true, follow: true},
	{algo: SA{Gamma: 0.25, Beta: 1, Descent: Descent{Opt: Nesterov{0.5}, Corrected: true}}, exact: true},
	{algo: Scaffnew{P: 0.25, C: 1, Descent: Descent{Opt: Nesterov{0.5}}}, static: true, when: coin(0.25), exact: true},
	{algo: LED{Tau: 4, Descent: Descent{Opt: HeavyBall{0.5}, Corrected: true}}, mu: 0.5, static: true, when: every(4),
		exact: true, follow: true},
	{algo: SA{Gamma: 0.25, Beta: 1, Descent: adamW(true)}, adaptive: true},
	{algo: SA{Gamma: 0.25, Beta: 1, Descent: adamW(false)}, adaptive: true},
	{algo: DIGing{Descent: adamW(true)}, adaptive: true},
	{algo: KGT{K: 4, EtaS: 1, Descent: adamW(false)}, static: true, when: every(4), adaptive: true},
	{algo: CHOCO{Theta: 0.2, Descent: adamW(false)}, whole: true, dress: chatter, adaptive: true},
	{algo: Swarm{Blocking: true, Steps: 2, Descent: adamW(false)}, dress: pairs, adaptive: true},
	{algo: SGD{Descent: adamW(false)}, static: true, adaptive: true},
	{algo: NEXT{}, exact: true, follow: true},
	{algo: NEXT{Kappa: 0.001}, exact: true, follow: true,
		step: func(t int) float64 { return new(stepDecay).at(t, 0.001) }},
	{algo: EXTRA{Delta: 0.5}, static: true, exact: true, follow: true},
	{algo: ProxGPDA{Rho: 3}, static: true, exact: true},
	{algo: DmSGD{Mu: 0.5}, mu: 0.5, follow: true},
	{algo: QG{Mu: 0.5}},
	{algo: QG{Mu: 0.5, Nesterov: true}},
	{algo: QG{Mu: 0.5, H: 4}, dress: pairsAtEnds},
	{algo: DecentLaM{Mu: 0.5}, mu: 0.5, follow: true, dress: unmasked},
	{algo: CHOCO{Theta: 0.2}, follow: true, whole: true, dress: chatter},
	{algo: CHOCO{Theta: 0.2, Descent: heavyBall(0.5)}, mu: 0.5, follow: true, whole: true, dress: chatter},
	{algo: Swarm{}, dress: pairs},
	{algo: Swarm{Descent: heavyBall(0.5)}, mu: 0.5, dress: pairs},
	{algo: Swarm{Blocking: true, Steps: 2}, dress: pairs},
	{algo: Swarm{Blocking: true, Steps: 1, Descent: heavyBall(0.5)}, mu: 0.5, dress: pairs},
	{algo: DiLoCo{H: 4, Rate: 1}, static: true, when: every(4), follow: true},
	{algo: DiLoCo{H: 4, Rate: 0.7, Mu: 0.9, Descent: adamW(false)}, static: true, when: every(4), adaptive: true},
	{algo: NoLoCo{H: 4, Rate: 0.7, Mu: 0.5, Pull: 0.7}, dress: pairsAtEnds},
	{algo: GASLoC{H: 4, Rate: 0.7, Mu: 0.5, Gamma: 0.4, Descent: heavyBall(0.5)}, mu: 0.5, dress: pairsAtEnds},
	{algo: SPARTA{Every: 1}, static: true, follow: true},
	{algo: SPARTA{Every: 2, Descent: adamW(false)}, static: true, when: every(2), adaptive: true},
	{algo: DeMo{Keep: 0.9, Decay: someDecay}, whole: true, dress: transforming},
	{algo: AsyncSTORM{STORM: STORM{Gamma: 0.25, Beta: 1, AX: 0.3, ALambda: 0.2}, Protocol: Protocol{Inverse, 10}},
		exact: true},
	{algo: Async{SA: SA{Gamma: 0.25, Beta: 1}, Protocol: Protocol{Coef: Inverse, CMax: 10}}, exact: true, follow: true},
	{algo: DSGT{}, exact: true, follow: true},
	{algo: DSGT{Descent: heavyBall(0.5)}, mu: 0.5, exact: true, follow: true},
	{algo: DSGT{Descent: Descent{Opt: HeavyBall{0.5}, Corrected: true}}, mu: 0.5, exact: true, follow: true},
	{algo: DSGT{Descent: adamW(true)}, adaptive: true},
	{algo: DIGing{Descent: Descent{Opt: GTAdam{0.9, 0.99, 1e-8, 1e6}, Corrected: true}}, adaptive: true},
	{algo: SGP{}, whole: true, dress: pushing},
	{algo: SGP{Descent: adamW(false)}, whole: true, adaptive: true, dress: pushing},
	{algo: SGP{Regular: true, Descent: heavyBall(0.5)}, mu: 0.5, follow: true, whole: true, dress: circling},
	{algo: Relay{N: 5}, whole: true, dress: treelike}, // a lost message pulls towards x^0
	{algo: Relay{ByCount: true, Descent: heavyBall(0.5)}, dress: treelike},
	{algo: &PowerGossip{Theta: 1, Tensors: []Tensor{{Rows: 2, Cols: 3}}, Draw: drawn(1),
		Descent: heavyBall(0.5)}, mu: 0.5,
		follow: true, dress: sketching},
	{algo: &SketchedSA{0.25, 1, PowerGossip{Tensors: []Tensor{{Rows: 2, Cols: 3}}, Draw: drawn(1),
		Descent: heavyBall(0.5)}},
		mu: 0.5, exact: true, follow: true, dress: sketching},
	{algo: EF{Gamma: 0.25, Beta: 1}, exact: true, follow: true, dress: copying},
	{algo: EF{Gamma: 0.25, Beta: 1, Descent: heavyBall(0.5)}, mu: 0.5, exact: true, follow: true, dress: copying},
	{algo: LocalSGD{DiLoCo{H: 4, Rate: 1, Moments: Moments{1, 2}, Descent: adamW(false)}}, static: true, when: every(4),
		adaptive: true},
	{algo: TiCoPD{Theta: 0.2, Beta: 1}, exact: true, follow: true, whole: true, dress: chatter},
	{algo: TiCoPD{Theta: 0.2, Beta: 1, Descent: heavyBall(0.5)}, mu: 0.5, exact: true, follow: true, whole: true,
		dress: chatter},
	{algo: DoCoM{Theta: 0.2, A: 0.3}, whole: true, dress: chatter},
	{algo: SparseLoCo{H: 2, Keep: 0.9, Rate: 0.7, Descent: adamW(false)}, adaptive: true,
		dress: coded(largest(2, 1, 4))},
	{algo: DiLoCo{H: 2, Rate: 0.7, Reduce: Quantized{}, Descent: heavyBall(0.5)}, dress: coded(inInts(4, 2))},
	{algo: DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Reduce: Quantized{TwoSteps: true, Feedback: 0.9}, Descent: heavyBall(0.5)},
		dress: coded(inFP8(3))},
	{algo: SPARTADiLoCo{Every: 1, DiLoCo: DiLoCo{H: 4, Rate: 1}}, static: true, follow: true},
	{algo: SPARTADiLoCo{Every: 2, DiLoCo: DiLoCo{H: 4, Rate: 0.7, Mu: 0.9, Descent: adamW(false)}}, static: true,
		when: every(2), adaptive: true},
	{algo: StreamingDiLoCo{Every: 4, Rate: 1}, static: true, when: every(4), follow: true},
	{algo: StreamingDiLoCo{Every: 2, Rate: 0.7, Mu: 0.9, Descent: adamW(false)}, static: true, when: every(2),
		adaptive: true},
	{algo: StreamingDiLoCo{Every: 4, Rate: 0.7, Mu: 0.9, Own: 0.3, Descent: heavyBall(0.5)}, static: true,
		when: every(4)},
	{algo: BEER{Theta: 0.2}, exact: true, follow: true, whole: true, dress: chatter},
	{algo: CHOCO{Theta: 0.2, Early: true, Descent: heavyBall(0.5)}, mu: 0.5, follow: true, whole: true, dress: chatter},
}

// adamW is descent by AdamW with decoupled weight decay on all coordinates but one.
func adamW(corrected bool) Descent {
	return Descent{Opt: AdamW{0.9, 0.99, 1e-8}, Corrected: corrected, Decay: someDecay}
}

var someDecay = &Decay{Rate: 0.01, Except: []uint32{1}}

// transforming sends the largest cosine coefficients of chunks to all agents.
func transforming(g *game, w world) {
	inDeMo(g, dist.NewTransform[float64]([][2]int{{len(g.x(0)), 0}}, 64))
}

// coded sends messages in a code at the ends of rounds of 2.
func coded(code coding) func(g *game, w world) {
	return func(g *game, _ world) { inCode(code, dist.Sent{})(g) }
}

// unmasked exchanges whole vectors.
func unmasked(g *game, _ world) { g.mask = func(int, int, int) []uint32 { return nil } }

// chatter makes half of the agents active at a time.
func chatter(g *game, w world) {
	g.broadcasting(w.graph, func(t, i int) bool { return (t+i)%2 == 0 }, w.ownMask)
}

// pushing sends from each agent to one random neighbour.
func pushing(g *game, w world) {
	unmasked(g, w)
	g.directed(func(t int) (arcs [][2]int) {
		s := rng.New(w.seed, "push", uint64(t))
		for i := range w.n {
			peers := neighbours(w.graph, i)
			arcs = append(arcs, [2]int{i, peers[s.IntN(len(peers))]})
		}
		return arcs
	})
}

// circling sends from i to i + 2^k, cyclic, with k = 0, 1 in turn.
func circling(g *game, w world) {
	unmasked(g, w)
	g.directed(func(t int) (arcs [][2]int) {
		for i := range w.n {
			arcs = append(arcs, [2]int{i, (i + 1<<(t%2)) % w.n})
		}
		return arcs
	})
}

// sketching exchanges sketches over random edges of the graph.
func sketching(g *game, w world) {
	unmasked(g, w)
	blocks := []Tensor{{Rows: 2, Cols: 2}, {Offset: 4, Rows: w.d - 4}}
	if w.d == 4 {
		blocks = blocks[:1]
	}
	switch a := g.algo.(type) {
	case *PowerGossip:
		p := *a
		p.Tensors, g.algo = blocks, &p
	case *SketchedSA:
		p := *a
		p.Tensors, g.algo = blocks, &p
	}
	for i, s := range g.state { // of the blocks above
		g.state[i] = NewState(g.algo, g.dev, s.X)
	}
	g.connected(w.graph)
}

// treelike exchanges over a tree.
func treelike(g *game, w world) {
	unmasked(g, w)
	var tree [][2]int
	for i := 1; i < w.n; i++ {
		tree = append(tree, [2]int{(i - 1) / 2, i})
	}
	if a, ok := g.algo.(Relay); ok && a.N > 0 {
		a.N = w.n
		g.algo = a
	}
	g.edges = func(int) [][2]int { return tree }
	g.connected(tree)
}

// pairs has one unmasked exchange at a time, initiated by either end.
func pairs(g *game, w world) {
	w.k, w.many = 0, false
	g.edges, g.mask = w.edges, w.mask
	g.prepare = func(r *Round) {
		r.NextBatch = func() {}
		for k := range r.Links {
			l := &r.Links[k]
			l.Initiator = (r.Self < l.Peer) == (r.T%2 == 0)
		}
	}
}

// pairsAtEnds is pairs in the last iteration of each round of four.
func pairsAtEnds(g *game, w world) {
	pairs(g, w)
	atEnds(g, 4)
}

func coin(p float64) func(t int) bool {
	return func(t int) bool { s := rng.New(9, "coin", uint64(t)); return s.Float64() < p }
}

func (e entry) name() string { return fmt.Sprintf("%s%+v", e.algo.Name(), e.algo) }

func (e entry) play(w world, q quadratics, alpha, eta float64) *game {
	if e.algo.Traits().Edges.Reduces {
		w.graph = w.complete()
	}
	if !e.static {
		if e.algo.Traits().Vectors > 0 && e.algo.Name() != "fspda-storm" {
			w.k = 0 // gradient tracking sends whole vectors
		}
		g := w.play(e.algo, q, alpha, eta)
		if e.dress != nil {
			e.dress(g, w)
		}
		return g
	}
	when := e.when
	if when == nil {
		when = always
	}
	return w.static(e.algo, q, alpha, eta, when)
}

// forTable tests a property over the table.
func forTable(t *testing.T, with func(e entry) bool, f func(t *testing.T, e entry)) {
	for _, e := range table {
		if with(e) {
			t.Run(e.name(), func(t *testing.T) { f(t, e) })
		}
	}
}

func all(entry) bool { return true }

// With exact gradients agents of different objectives reach the optimum, over random edges and
// masks, and the tracked vector reaches its limit and sums to zero.
func TestAllReachOptimum(t *testing.T) {
	forTable(t, func(e entry) bool { return e.exact }, func(t *testing.T, e entry) {
		const alpha, eta = 0.04, 0.02
		w := world{seed: 5, n: 5, d: 4, k: 2, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 4}}}
		s := rng.New(5, "quadratics")
		q := randomQuadratics(&s, w.n, w.d)
		g := e.play(w, q, alpha, eta)
		best := q.optimum()
		far := func() float64 {
			worst := 0.0
			for i := range w.n {
				worst = max(worst, distance(g.x(i), best))
			}
			return worst
		}
		it := 0
		for ; it < 60000 && (it%1000 != 0 || far() > 1e-12); it++ {
			g.step(t, it)
		}
		if f := far(); !(f < 1e-10) {
			t.Fatalf("%g from the optimum after %d iterations", f, it)
		}
		t.Logf("%g after %d", far(), it)
		checkTracked(t, e, g, q, w, alpha, eta)
	})
}

func checkTracked(t *testing.T, e entry, g *game, q quadratics, w world, alpha, eta float64) {
	tracked := e.algo.Traits().Tracked
	name, multiple := tracked.Name, tracked.Multiple(alpha, eta)
	gi := make([]float64, w.d)
	for i := range w.n {
		q.grad(0, i, gi, q.optimum()) // ∇F is zero there
		for k := range gi {
			gi[k] *= -multiple
		}
		if e := distance(g.aux(i, name), gi); e > 1e-10*(1+distance(gi, make([]float64, w.d))) {
			t.Errorf("%s of agent %d ends %g from its limit", name, i, e)
		}
	}
}

// The tracked vector sums to zero at all times, also if exchanges fail.
func TestAllTrackedSumToZero(t *testing.T) {
	forTable(t, func(e entry) bool { return e.algo.Traits().Tracked.Name != "" && e.algo != table[5].algo },
		func(t *testing.T, e entry) {
			forWorlds(t, func(t *testing.T, w world, q quadratics) {
				g := e.play(w, q, 0.02, 0.01)
				if !e.whole {
					failing(g, w)
				}
				g.grad = noisy(q, w.seed, 0.3)
				name := e.algo.Traits().Tracked.Name
				for it := range 150 {
					g.step(t, it)
					if s := sumNorm(w.n, func(i int) []float64 { return g.aux(i, name) }); s > 1e-11 {
						t.Fatalf("iteration %d: |sum of %s| = %g", it, name, s)
					}
				}
			})
		})
}

// failing makes each exchange fail with probability 0.3, for both ends.
func failing(g *game, w world) *game {
	g.lost = func(t, i, j int) bool {
		s := rng.New(w.seed, "lost", uint64(t), uint64(i), uint64(j))
		return s.Float64() < 0.3
	}
	return g
}

// The mean model moves by -alpha times the mean direction, on every graph, with and without
// failures.
func TestAllFollowTheMean(t *testing.T) {
	forTable(t, func(e entry) bool { return e.follow }, func(t *testing.T, e entry) {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			const alpha = 0.02
			g := e.play(w, q, alpha, 0.01)
			if !e.algo.Traits().Edges.Reduces && !e.whole {
				failing(g, w)
			}
			g.grad = noisy(q, w.seed, 0.3)
			u, gi := make([]float64, w.d), make([]float64, w.d)
			for it := range 200 {
				for k := range u {
					u[k] *= e.mu
				}
				for i := range w.n {
					g.grad(it, i, gi, g.x(i))
					for k := range gi {
						u[k] += gi[k] / float64(w.n)
					}
				}
				step := alpha
				if e.step != nil {
					step *= e.step(it)
				}
				want := mean(w.n, g.x)
				for k := range want {
					want[k] -= step * u[k]
				}
				g.step(t, it)
				if off := distance(want, mean(w.n, g.x)); off > 1e-12 {
					t.Fatalf("iteration %d: the mean is %g off", it, off)
				}
			}
		})
	})
}

// Idle iterations and failing exchanges are tolerated: with exact gradients, agents with equal
// objectives still reach the optimum together.
func TestAllSurviveFailingEdges(t *testing.T) {
	forTable(t, func(e entry) bool { return !e.algo.Traits().Edges.Reduces && !e.whole && !e.adaptive },
		func(t *testing.T, e entry) {
			w := world{seed: 3, n: 5, d: 4, k: 2, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 4}}}
			s := rng.New(3, "quadratics")
			q := randomQuadratics(&s, w.n, w.d)
			if !e.exact { // biased algorithms miss the optimum if objectives differ
				for i := range q.h {
					q.h[i], q.b[i] = q.h[0], q.b[0]
				}
			}
			g := failing(e.play(w, q, 0.03, 0.01), w)
			for i := range w.n { // different start points
				g.x(i)[0] = float64(i) / 5
			}
			tolerance := 1e-6
			if e.algo == Algorithm(SA{Gamma: 0.25, Beta: 1, Stale: true}) {
				tolerance = 0.2 // its dual depends on the start point
			}
			worst := math.Inf(1)
			for it := 0; it < 40000 && worst > tolerance/2; it++ {
				g.step(t, it)
				if it%1000 != 999 {
					continue
				}
				worst = 0
				for i := range w.n {
					worst = max(worst, distance(g.x(i), q.optimum()))
				}
			}
			if worst > tolerance {
				t.Errorf("%g from the optimum", worst)
			}
		})
}

// X, Aux, Count, Scalars and Edges are the complete persistent state: agents recreated from them at
// any iteration continue with the same bits.
func TestAllResumeFromState(t *testing.T) {
	forTable(t, all, func(t *testing.T, e entry) {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			whole, parts := e.play(w, q, 0.02, 0.01), e.play(w, q, 0.02, 0.01)
			whole.grad, parts.grad = noisy(q, w.seed, 0.3), noisy(q, w.seed, 0.3)
			for it := range 40 {
				if it%3 == 2 {
					for i, s := range parts.state {
						parts.state[i] = revive(parts.algo, parts.dev, s)
					}
				}
				whole.step(t, it)
				parts.step(t, it)
			}
			for i := range w.n {
				if !slices.Equal(whole.x(i), parts.x(i)) {
					t.Fatalf("agent %d goes another way", i)
				}
			}
		})
	})
}

// revive makes a state from X, Aux, Count, Scalars and Edges of another one.
func revive(a Algorithm, dev device.Device, s *State) *State {
	x := dev.NewVector(s.X.Len())
	copy(values(x), values(s.X))
	r := NewState(a, dev, x)
	for i, v := range s.Aux {
		copy(values(r.Aux[i]), values(v))
	}
	r.Count = s.Count
	copy(r.Scalars, s.Scalars)
	var peers []int
	for _, m := range s.Edges {
		peers = append(peers, m.Peer)
	}
	r.Connect(a, peers)
	for i, m := range s.Edges {
		m.CopyTo(dev, r.Edges[i])
	}
	return r
}

// A step allocates only the list of vectors of each message.
func TestAllAllocateNothing(t *testing.T) {
	forTable(t, all, func(t *testing.T, e entry) {
		w := world{seed: 5, n: 3, d: 4, graph: [][2]int{{0, 1}, {1, 2}}}
		s := rng.New(5, "quadratics")
		q := randomQuadratics(&s, w.n, w.d)
		g := e.play(w, q, 0.02, 0.01)
		for i := range g.state { // a device without effect, since the float64 device allocates
			g.state[i].Dev = still{g.dev}
		}
		rounds, stages := make([]*Round, w.n), Stages(g.algo)
		var received []device.Vector
		number := g.dev.NewVector(1)
		step := func() {
			for i, s := range g.state {
				r := rounds[i]
				for k := range r.Links {
					r.Links[k].Sent = nil
				}
				for _, post := range stages {
					if err := post(s, r); err != nil {
						t.Fatal(err)
					}
					for k := range r.Links {
						// the other end of a broadcast
						if r.Links[k].Received = r.Links[k].Sent; r.Links[k].Sent == nil {
							r.Links[k].Received = received
						}
					}
				}
				if err := g.algo.Mix(s, r); err != nil {
					t.Fatal(err)
				}
			}
		}
		const T = 11 // ends a round of 2, 3 and 4
		links := 0
		buffer := g.dev.NewVector(w.d)
		received = []device.Vector{buffer, buffer}
		if _, ok := e.algo.(SGP); ok {
			received[1] = number
		}
		for i := range rounds {
			rounds[i] = g.round(T, i, g.edges(T))
			r := rounds[i]
			r.Grad = func(dst, x device.Vector) error { return nil }
			r.Acquire = func(n int) device.Vector {
				if n == 1 {
					return number
				}
				return buffer
			}
			r.Post = func(link int, v ...device.Vector) { r.Links[link].Sent = v }
			if r.Compress != nil {
				p, err := r.Compress(buffer, 1)
				if err != nil {
					t.Fatal(err)
				}
				r.Compress = func(device.Vector, int) (Compressed, error) { return p, nil }
			}
			links += len(r.Links)
		}
		if n := testing.AllocsPerRun(20, step); n > float64(links*len(stages)) {
			t.Errorf("%v allocations in a step of %d messages", n, links)
		}
	})
}

// still is a device that computes inner products only.
type still struct{ device.Device }

func (d still) Do(ops ...device.Op) {
	for i := range ops {
		if ops[i].Kind == device.KindDot {
			d.Device.Do(ops[i : i+1]...)
		}
	}
}

// The released program's dual step, own at t+1 against other at t, misses the optimum: it ends near
// the minimizer of F + (c/2)·|x - x^0|² with c = 2·eta·beta·(k/d)/(n·alpha), one edge at a time.
func TestStaleDualPullsBack(t *testing.T) {
	for _, k := range []int{2, 4} {
		w := world{seed: 2, n: 4, d: 4, k: k, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}}}
		s := rng.New(2, "quadratics")
		q := randomQuadratics(&s, w.n, w.d)
		const alpha, eta = 0.005, 0.002
		g := w.play(SA{Gamma: 0.4, Beta: 1, Stale: true}, q, alpha, eta)
		sum := make([]float64, w.d)
		const T, from = 24000, 8000
		for it := range T {
			g.step(t, it)
			if it >= from {
				for j, v := range mean(w.n, g.x) {
					sum[j] += v / (T - from)
				}
			}
		}
		c := 2 * eta * float64(k) / float64(w.d) / (float64(w.n) * alpha)
		want := make([]float64, w.d)
		for j := range want {
			num, den := 0.0, c
			for i := range q.h {
				num += q.h[i][j] * q.b[i][j] / float64(w.n)
				den += q.h[i][j] / float64(w.n)
			}
			want[j] = num / den
		}
		best := q.optimum()
		t.Logf("k %d: %.4f from the optimum, predicted %.4f, distance %.4f", k, distance(sum, best),
			distance(want, best),
			distance(sum, want))
		if off := distance(sum, best); off < 0.05 || distance(sum, want) > 0.2*off {
			t.Errorf("k %d: %g from the optimum, %g from the minimiser that should be there", k, off,
				distance(sum, want))
		}
	}
}
