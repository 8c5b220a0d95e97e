package algo

import (
	"slices"
	"sync"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// meeting lets the members of a game call the functions of a [Group], each in a goroutine of its
// own.
type meeting struct {
	mu      sync.Mutex
	all     sync.Cond
	n, here int
	turn    int
	shown   map[int][]float64 // What the members brought to this turn.
	before  map[int][]float64 // What they brought to the one before.
}

// show brings a vector and returns those of all members.
func (m *meeting) show(i int, v device.Vector) map[int][]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown[i] = slices.Clone(values(v))
	turn := m.turn
	if m.here++; m.here == m.n {
		m.here, m.turn = 0, m.turn+1
		m.before, m.shown = m.shown, map[int][]float64{}
		m.all.Broadcast()
	}
	for m.turn == turn {
		m.all.Wait()
	}
	return m.before
}

// regroup has the members of a game go over a change: joined are the new ones, which copy the state
// of the donor. The mixing matrix is w.
func (g *game) regroup(tb testing.TB, joined []int, donor int, w [][]float64) {
	var members []int
	m := &meeting{n: len(g.state), shown: map[int][]float64{}}
	m.all.L = &m.mu
	for i := range g.state {
		members = append(members, i)
	}
	var wg sync.WaitGroup
	for i, s := range g.state {
		group := &Group{Members: members, Joined: joined, Self: i, Acquire: g.dev.NewVector}
		add := func(dst device.Vector, all map[int][]float64, weight func(j int) float64) {
			clear(values(dst))
			for _, j := range members {
				for k, v := range all[j] {
					values(dst)[k] += float64(weight(j) * v)
				}
			}
		}
		group.Sum = func(dst, v device.Vector) error {
			add(dst, m.show(i, v), func(j int) float64 {
				if slices.Contains(joined, j) {
					return 0
				}
				return 1
			})
			return nil
		}
		group.Mix = func(dst, v device.Vector) error {
			add(dst, m.show(i, v), func(j int) float64 { return w[i][j] })
			return nil
		}
		group.Copy = func(vs ...device.Vector) error {
			for _, v := range vs {
				if all := m.show(i, v); group.Joins() {
					copy(values(v), all[donor])
				}
			}
			return nil
		}
		wg.Go(func() {
			if err := group.Copy(append([]device.Vector{s.X}, s.Donated()...)...); err != nil {
				tb.Error(err)
			}
			model := m.show(i, s.X)[donor]
			donated := g.dev.NewVector(len(model))
			copy(values(donated), model)
			s.Reset(g.algo, group, donated)
			if err := g.algo.Traits().Regroup(s, group); err != nil {
				tb.Error(err)
			}
		})
	}
	wg.Wait()
	for _, i := range joined {
		g.state[i].Count = g.state[donor].Count
	}
}

// far is the largest distance of an agent from a model.
func (g *game) far(from []float64) (worst float64) {
	for i := range g.state {
		worst = max(worst, distance(g.x(i), from))
	}
	return worst
}

// Of agents of different objectives one leaves, and the others reach the optimum of theirs; it joins
// again with the state of another, and all reach the optimum of all. Tracked vectors sum to zero.
// An algorithm with a sum that members conserve ends elsewhere without Regroup.
func TestMembersReachTheirOptimum(t *testing.T) {
	const alpha, eta = 0.04, 0.02
	whole := world{seed: 5, n: 5, d: 4, k: 2, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 2}, {3, 4}, {2, 4}}}
	left := whole
	left.n, left.graph = 4, whole.graph[:5]
	s := rng.New(5, "quadratics")
	q := randomQuadratics(&s, whole.n, whole.d)
	rest := quadratics{h: q.h[:4], b: q.b[:4]}
	with := func(e entry) bool { return e.exact && e.algo.Traits().Regroup != nil }
	forTable(t, with, func(t *testing.T, e entry) {
		at := 0
		play := func(g *game, w world, best []float64, most int) *game {
			next := e.play(w, rest, alpha, eta)
			if next.grad = q.grad; g != nil {
				next.state = g.state
			}
			for end := at + most; at < end && (at%240 > 0 || next.far(best) > 1e-7); at++ {
				next.step(t, at)
			}
			return next
		}
		check := func(g *game, best []float64) {
			t.Helper()
			if f := g.far(best); !(f < 1e-6) {
				t.Errorf("%g from the optimum at %d", f, at)
			}
			sum := make([]float64, whole.d)
			for i := range g.state {
				for k, v := range g.aux(i, e.algo.Traits().Tracked.Name) {
					sum[k] += v
				}
			}
			if n := distance(sum, make([]float64, whole.d)); n > 1e-9 {
				t.Errorf("the tracked vectors sum to %g", n)
			}
		}
		g := play(nil, whole, q.optimum(), 1200)
		lost := g.state[4]
		kept := g.copies()
		g.state = g.state[:4]
		g.regroup(t, nil, 0, mixing(left.graph, 4))
		g = play(g, left, rest.optimum(), 48000)
		check(g, rest.optimum())

		g.state = append(g.state, lost)
		g.regroup(t, []int{4}, 1, mixing(whole.graph, 5))
		g = play(g, whole, q.optimum(), 48000)
		check(g, q.optimum())

		kept.state = kept.state[:4]
		kept = play(kept, left, rest.optimum(), 2400)
		if f := kept.far(rest.optimum()); f < 1e-2 && !e.whole {
			t.Errorf("without Regroup: %g from the optimum", f)
		}
	})
}

// An agent leaves that one neighbour misses first in the second exchange of an iteration, and another
// one later in a first one. The invariants of methods with two exchanges, which the members do not keep
// then, hold again after the change, and the members reach their optimum. Without Regroup they do not.
func TestTrackersAfterMissedExchanges(t *testing.T) {
	const alpha, first, at = 0.04, 40, 45
	whole := world{seed: 5, n: 5, d: 4, k: 2, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 2}, {3, 4}, {2, 4}}}
	left := whole
	left.n, left.graph = 4, whole.graph[:5]
	s := rng.New(5, "quadratics")
	q := randomQuadratics(&s, whole.n, whole.d)
	best := quadratics{h: q.h[:4], b: q.b[:4]}.optimum()
	missed := func(t, k, i, of int) bool {
		switch {
		case i == 2 && of == 4:
			return t > first || t == first && k == 1
		case i == 4 && of == 2: // It has the messages of the exchange that agent 2 missed first.
			return t > first
		case i == 3 && of == 4, i == 4 && of == 3:
			return t > first+3 || t == first+3 && i == 3
		}
		return false
	}
	for _, a := range []Algorithm{DSGT{}, DSGT{Descent: heavyBall(0.5)}, DoCoM{Theta: 0.2, A: 0.3}} {
		// off is how far the invariants are from holding.
		off := func(g *game, w world) (worst float64) {
			if _, compressed := a.(DoCoM); !compressed {
				return distance(mean(w.n, func(i int) []float64 { return g.aux(i, "z") }), make([]float64, w.d))
			}
			of := func(name string) []float64 { return mean(w.n, func(i int) []float64 { return g.aux(i, name) }) }
			worst = distance(of("v"), of("tracker"))
			weights := mixing(w.graph, w.n)
			for public, sum := range map[string]string{"g": "sg", "h": "sh"} {
				for i := range w.n {
					want := make([]float64, w.d)
					for j := range w.n {
						for k, v := range g.aux(j, public) {
							want[k] += weights[i][j] * v
						}
					}
					worst = max(worst, distance(want, g.aux(i, sum)))
				}
			}
			return worst
		}
		play := func(w world, g *game) *game {
			next := w.play(a, q, alpha, 0)
			if _, compressed := a.(DoCoM); compressed {
				chatter(next, w)
			} else {
				unmasked(next, w)
				next.edges = func(int) [][2]int { return w.graph }
			}
			if g != nil {
				next.state = g.state
			}
			return next
		}
		g := play(whole, nil)
		g.missed = missed
		for it := range first {
			g.step(t, it)
		}
		if e := off(g, whole); e > 1e-11 {
			t.Fatalf("%s: the invariants are %g off before an agent leaves", a.Name(), e)
		}
		for it := first; it < at; it++ {
			g.step(t, it)
		}
		if e := off(g, whole); e < 1e-6 {
			t.Errorf("%s: the invariants are %g off although exchanges were missed", a.Name(), e)
		}
		g.state = g.state[:4]
		kept := play(left, g.copies())
		g.regroup(t, nil, 0, mixing(left.graph, 4))
		g = play(left, g)
		for it := at; it < at+24000 && (it < at+240 || g.far(best) > 1e-7); it++ {
			if e := off(g, left); it < at+240 && e > 1e-11 {
				t.Fatalf("%s: the invariants are %g off in iteration %d", a.Name(), e, it)
			}
			g.step(t, it)
		}
		if e := g.far(best); !(e < 1e-6) {
			t.Errorf("%s: %g from the optimum of the members", a.Name(), e)
		}
		for it := at; it < at+2400; it++ {
			kept.step(t, it)
		}
		if e := kept.far(best); e < 1e-2 {
			t.Errorf("%s: without Regroup %g from the optimum", a.Name(), e)
		}
	}
}

// copies returns a game of copies of the states.
func (g *game) copies() *game {
	other := *g
	other.state = nil
	for _, s := range g.state {
		x := g.dev.NewVector(s.X.Len())
		copy(values(x), values(s.X))
		c := NewState(g.algo, g.dev, x)
		for k, v := range s.Aux {
			copy(values(c.Aux[k]), values(v))
		}
		copy(c.Scalars, s.Scalars)
		c.Count = s.Count
		for _, m := range s.Edges {
			edge := &EdgeMemory{Peer: m.Peer, Count: m.Count}
			for _, v := range m.Vectors {
				w := g.dev.NewVector(v.Len())
				copy(values(w), values(v))
				edge.Vectors = append(edge.Vectors, w)
			}
			c.Edges = append(c.Edges, edge)
		}
		other.state = append(other.state, c)
	}
	return &other
}
