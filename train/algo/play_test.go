package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/internal/rng"
)

// game runs an algorithm in lockstep on a toy problem, without goroutines and transport.
type game struct {
	dev   device.Device
	algo  Algorithm
	state []*State
	alpha float64
	eta   float64

	edges func(t int) [][2]int           // active edges of iteration t
	mask  func(t int, i, j int) []uint32 // coordinates of an exchange; nil: all
	grad  func(t, i int, dst, x []float64)
	share bool // agents that receive from all others share their sums

	commons map[[2]int][]float64 // by iteration and number
	differ  bool                 // two agents filled the same vector differently

	fixed func(i, j int) float64 // weights of the fixed mixing matrix; nil: none
	lost  func(t, i, j int) bool // exchanges that fail, i < j; nil: none

	// missed reports whether agent i misses the messages of an agent in exchange k of an iteration; nil:
	// none does.
	missed func(t, k, i, of int) bool

	prepare func(r *Round) // completes a round for an algorithm; may be nil
	heard   func(r *Round) // completes what was received; may be nil

	late []*Round // The rounds whose messages are awaited in a later iteration, by agent.

	ledger dist.Ledger
	coded  func(l *Link, which int) dist.Sent // what a message of a broadcast sends
}

func newGame(a Algorithm, n int, x0 []float64) *game {
	g := &game{dev: devicetest.NewFloat64(), algo: a, mask: func(int, int, int) []uint32 { return nil }}
	for range n {
		x := g.dev.NewVector(len(x0))
		copy(values(x), x0)
		g.state = append(g.state, NewState(a, g.dev, x))
	}
	return g
}

// connected gives the agents the memory of the edges of a graph.
func (g *game) connected(graph [][2]int) *game {
	for i, s := range g.state {
		s.Connect(g.algo, neighbours(graph, i))
	}
	return g
}

// neighbours lists those of agent i, ascending.
func neighbours(graph [][2]int, i int) (peers []int) {
	for _, e := range graph {
		switch i {
		case e[0]:
			peers = append(peers, e[1])
		case e[1]:
			peers = append(peers, e[0])
		}
	}
	slices.Sort(peers)
	return peers
}

// directed sends over arcs, from the first agent of each to the second, in equal shares.
func (g *game) directed(arcs func(t int) [][2]int) *game {
	g.edges = func(t int) (edges [][2]int) {
		for _, a := range arcs(t) {
			if e := [2]int{min(a[0], a[1]), max(a[0], a[1])}; !slices.Contains(edges, e) {
				edges = append(edges, e)
			}
		}
		return edges
	}
	g.prepare = func(r *Round) {
		share := func(j int) float64 {
			n := 1
			for _, a := range arcs(r.T) {
				if a[0] == j {
					n++
				}
			}
			return 1 / float64(n)
		}
		r.Keep = share(r.Self)
		for k := range r.Links {
			l := &r.Links[k]
			l.Share = share(l.Peer)
			l.Mute = !slices.Contains(arcs(r.T), [2]int{r.Self, l.Peer})
			l.PeerInactive = !slices.Contains(arcs(r.T), [2]int{l.Peer, r.Self})
		}
	}
	return g
}

// heavyBall is descent with momentum.
func heavyBall(mu float64) Descent { return Descent{Opt: HeavyBall{mu}} }

// momentumOf is the factor of the heavy ball of an algorithm; 0: it has none.
func momentumOf(a Algorithm) float64 {
	if b, ok := a.Traits().Descent.Optimizer().(HeavyBall); ok {
		return b.Mu
	}
	return 0
}

func values(v device.Vector) []float64 { return v.(*devicetest.Vector64).Data }

func (g *game) x(i int) []float64 { return values(g.state[i].X) }

// aux returns agent i's auxiliary vector of that name.
func (g *game) aux(i int, name string) []float64 { return values(Aux(g.algo, g.state[i], name)) }

// step runs iteration t: every agent's Local, then the exchange, and so on; then every agent's Mix.
func (g *game) step(tb testing.TB, t int) {
	rounds, active, traits := make([]*Round, len(g.state)), g.edges(t), g.algo.Traits()
	for i := range g.state {
		rounds[i] = g.round(t, i, active)
	}
	for exchange, stage := range Stages(g.algo) {
		for i, s := range g.state {
			if err := stage(s, rounds[i]); err != nil {
				tb.Fatal(err)
			}
		}
		if traits.Delay > 0 {
			g.setApart(rounds, t, traits)
		}
		for i, r := range rounds {
			for k := range r.Links {
				peer := rounds[r.Links[k].Peer]
				if g.missed != nil && g.missed(t, exchange, i, peer.Self) {
					r.Links[k].PeerInactive = true
					continue
				}
				for _, l := range peer.Links {
					if l.Peer == i && (g.lost == nil || !g.lost(t, min(i, r.Links[k].Peer), max(i, r.Links[k].Peer))) {
						r.Links[k].Received = l.Sent
					}
				}
			}
			if g.heard != nil {
				g.heard(r)
			}
		}
	}
	for i, r := range rounds {
		for k := 0; k < len(r.Links) && traits.Delay == 0; k++ {
			g.count(i, &r.Links[k], traits)
		}
		if err := g.algo.Mix(g.state[i], r); err != nil {
			tb.Fatal(err)
		}
	}
}

// setApart takes the links of an iteration out of its rounds, and puts those into them whose
// messages are awaited now.
func (g *game) setApart(rounds []*Round, t int, traits Traits) {
	now := g.late
	if len(rounds[0].Links) > 0 {
		g.late = nil
		for i, r := range rounds {
			apart := *r
			g.late = append(g.late, &apart)
			for k := range r.Links {
				g.count(i, &r.Links[k], traits)
			}
		}
	}
	for i, r := range rounds {
		if r.Links = nil; now != nil && now[i].T+traits.Delay == t {
			r.Links = now[i].Links
		} else {
			r.Shared = nil
		}
	}
}

// count enters what agent i sent over a link in the ledger.
func (g *game) count(i int, l *Link, traits Traits) {
	if len(l.Sent) == 0 {
		return
	}
	if edges := traits.Edges; edges.Reduces && !edges.Gathers {
		if i > 0 && l.Peer == 0 && g.coded != nil {
			m := g.coded(l, 0)
			m.Values, m.ExtraBits = 2*m.Values, 2*m.ExtraBits
			g.ledger.Send(m)
		} else if i > 0 && l.Peer == 0 { // 2(n-1) vectors in all, indices n-1 times
			g.ledger.Send(dist.Sent{Values: 2 * l.Len * len(l.Sent), ValueBits: 32, Mask: l.Len,
				Dim: g.state[i].X.Len(), Indices: true})
		}
		return
	}
	if g.coded != nil {
		for which := range traits.MessagesPerIteration() {
			g.ledger.Send(g.coded(l, which))
		}
		return
	}
	values := -l.Overhead
	for _, v := range l.Sent {
		values += v.Len()
	}
	g.ledger.Send(dist.Sent{Values: values, ValueBits: 32, Mask: l.Len, Dim: g.state[i].X.Len(), Indices: i > l.Peer})
}

// bits are those sent so far, in the three accountings.
func (g *game) bits() [3]uint64 {
	return [3]uint64{g.ledger.SharedSeed, g.ledger.Packed, g.ledger.Reference}
}

func (g *game) round(t, i int, active [][2]int) *Round {
	r := &Round{T: t, Self: i, Alpha: g.alpha, Eta: g.eta, Acquire: g.dev.NewVector}
	r.Grad = func(dst, x device.Vector) error { g.grad(t, i, values(dst), values(x)); return nil }
	r.Post = func(link int, v ...device.Vector) { r.Links[link].Sent = append(r.Links[link].Sent, v...) }
	degree := make([]int, len(g.state))
	for _, e := range active {
		degree[e[0]]++
		degree[e[1]]++
	}
	r.Links = make([]Link, 0, degree[i])
	for peer := range g.state { // ascending peers
		for _, e := range active {
			if e != [2]int{min(i, peer), max(i, peer)} || i == peer {
				continue
			}
			l := Link{Peer: peer, Initiator: i == e[0], Len: g.state[i].X.Len(),
				ActiveWeight: 1 / float64(1+max(degree[i], degree[peer]))}
			if g.fixed != nil {
				l.FixedWeight = g.fixed(i, peer)
			}
			if c := g.mask(t, e[0], e[1]); c != nil {
				l.Mask, l.Len = g.dev.NewIndex(c, nil), len(c)
			}
			r.Links = append(r.Links, l)
		}
	}
	if g.share && len(active) == len(g.state)*(len(g.state)-1)/2 && r.Links[0].Mask == nil {
		r.Shared = func(which int, fill func(dst device.Vector)) device.Vector {
			return g.common([2]int{t, which}, fill)
		}
	}
	if g.share {
		r.Swap = g.trade
		r.Retain = func(v, old device.Vector) device.Vector {
			copy(values(old), g.trash(old.Len()))
			return v
		}
	}
	if g.prepare != nil {
		g.prepare(r)
	}
	return r
}

// common has each agent fill a vector, and records whether all agree.
func (g *game) common(key [2]int, fill func(dst device.Vector)) device.Vector {
	v := g.dev.NewVector(g.state[0].X.Len())
	fill(v)
	if g.commons == nil {
		g.commons = map[[2]int][]float64{}
	}
	if first, ok := g.commons[key]; ok && !slices.Equal(first, values(v)) {
		g.differ = true
	}
	g.commons[key] = values(v)
	return v
}

// trade returns a vector with undefined contents.
func (g *game) trade(v device.Vector) device.Vector {
	fresh := g.dev.NewVector(v.Len())
	copy(values(fresh), g.trash(v.Len()))
	return fresh
}

// trash returns undefined contents.
func (g *game) trash(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }

// quadratics are objectives f_i(x) = ½Σ_k h_ik (x_k - b_ik)². Their gradients are multiplied by a
// factor common to all agents.
type quadratics struct {
	h, b   [][]float64
	factor func(t int) float64
}

func (q quadratics) grad(t, i int, dst, x []float64) {
	f := 1.0
	if q.factor != nil {
		f = q.factor(t)
	}
	for k := range dst {
		dst[k] = f * q.h[i][k] * (x[k] - q.b[i][k])
	}
}

// optimum is the minimiser of the mean objective.
func (q quadratics) optimum() []float64 {
	x := make([]float64, len(q.h[0]))
	for k := range x {
		num, den := 0.0, 0.0
		for i := range q.h {
			num += q.h[i][k] * q.b[i][k]
			den += q.h[i][k]
		}
		x[k] = num / den
	}
	return x
}

// randomQuadratics have curvatures in [0.5,2] and minimisers that differ between agents.
func randomQuadratics(s *rng.Stream, n, d int) quadratics {
	var q quadratics
	for range n {
		h, b := make([]float64, d), make([]float64, d)
		for k := range h {
			h[k], b[k] = 0.5+1.5*s.Float64(), 2*s.Norm()
		}
		q.h, q.b = append(q.h, h), append(q.b, b)
	}
	return q
}

// world is a random connected graph. One random edge with a random mask is active in each
// iteration.
type world struct {
	seed  uint64
	n, d  int
	k     int // coordinates of a mask; 0: all
	graph [][2]int
	many  bool // each edge with probability 1/2 instead of one
}

func randomWorld(seed uint64, k int) world {
	s := rng.New(seed, "world")
	w := world{seed: seed, n: 4 + s.IntN(5), d: 6, k: k}
	for i := 1; i < w.n; i++ { // a random tree, then some more edges
		w.graph = append(w.graph, [2]int{s.IntN(i), i})
	}
	for i := range w.n {
		for j := i + 2; j < w.n; j++ {
			e := [2]int{i, j}
			if s.Float64() < 0.3 && !slices.Contains(w.graph, e) {
				w.graph = append(w.graph, e)
			}
		}
	}
	return w
}

func (w world) edges(t int) [][2]int {
	s := rng.New(w.seed, "edges", uint64(t))
	if !w.many {
		return [][2]int{w.graph[s.IntN(len(w.graph))]}
	}
	var active [][2]int
	for _, e := range w.graph {
		if s.Float64() < 0.5 {
			active = append(active, e)
		}
	}
	return active
}

func (w world) mask(t, i, j int) []uint32 {
	if w.k == 0 {
		return nil
	}
	s := rng.New(w.seed, "mask", uint64(t), uint64(i), uint64(j))
	var c []uint32
	for k := range w.d { // selection sampling
		if s.IntN(w.d-k) < w.k-len(c) {
			c = append(c, uint32(k))
		}
	}
	return c
}

func (w world) play(a Algorithm, q quadratics, alpha, eta float64) *game {
	g := newGame(a, w.n, make([]float64, w.d))
	g.alpha, g.eta, g.edges, g.mask, g.grad = alpha, eta, w.edges, w.mask, q.grad
	return g
}

// static runs on the whole graph in the iterations selected by when, without masks, with its
// Metropolis weights as W.
func (w world) static(a Algorithm, q quadratics, alpha, eta float64, when func(t int) bool) *game {
	g := w.play(a, q, alpha, eta)
	g.mask = func(int, int, int) []uint32 { return nil }
	g.edges = func(t int) [][2]int {
		if when(t) {
			return w.graph
		}
		return nil
	}
	g.fixed = w.metropolis()
	return g
}

// complete returns all pairs.
func (w world) complete() (graph [][2]int) {
	for i := range w.n {
		for j := range i {
			graph = append(graph, [2]int{j, i})
		}
	}
	return graph
}

// metropolis returns the Metropolis weights of the whole graph.
func (w world) metropolis() func(i, j int) float64 {
	degree := make([]int, w.n)
	for _, e := range w.graph {
		degree[e[0]]++
		degree[e[1]]++
	}
	return func(i, j int) float64 { return 1 / float64(1+max(degree[i], degree[j])) }
}

func always(int) bool { return true }

// every selects the last iteration of each round of tau.
func every(tau int) func(t int) bool { return func(t int) bool { return (t+1)%tau == 0 } }

// mean is the mean over the agents of what get returns.
func mean(n int, get func(i int) []float64) []float64 {
	m := append([]float64(nil), get(0)...)
	for i := 1; i < n; i++ {
		for k, v := range get(i) {
			m[k] += v
		}
	}
	for k := range m {
		m[k] /= float64(n)
	}
	return m
}

func distance(a, b []float64) float64 {
	sq := 0.0
	for k := range a {
		sq += (a[k] - b[k]) * (a[k] - b[k])
	}
	return math.Sqrt(sq)
}
