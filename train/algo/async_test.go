package algo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// eventSim applies the asynchronous protocol event by event, without clock and goroutines, and
// records what a replay needs.
type eventSim struct {
	g      *game
	a      Asynchronous
	clocks []LogicalClock

	coef  []map[int]float64 // agent → logical time → coefficient of its gradient
	edges map[int][][2]int  // logical time → exchanges
	masks map[[3]int][]uint32
}

func newBottle(g *game, a Asynchronous) *eventSim {
	b := &eventSim{g: g, a: a, clocks: make([]LogicalClock, len(g.state)), edges: map[int][][2]int{},
		masks: map[[3]int][]uint32{}}
	for range g.state {
		b.coef = append(b.coef, map[int]float64{})
	}
	return b
}

// complete ends agent i's gradient.
func (b *eventSim) complete(tb testing.TB, i int) { b.move(tb, i, true) }

func (b *eventSim) move(tb testing.TB, i int, gradient bool) {
	st := b.a.Finish(&b.clocks[i], gradient)
	if st.Q != 1 {
		tb.Errorf("agent %d catches up %d times inside a gossip step; both ends have caught up before", i, st.Q)
	}
	if gradient {
		b.coef[i][st.T] = st.C
	}
	err := b.a.Move(b.g.state[i], st, b.g.alpha, b.g.eta, func(dst, x device.Vector) error {
		b.g.grad(st.T, i, values(dst), values(x))
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// meet is an edge event between i and j, i < j.
func (b *eventSim) meet(tb testing.TB, i, j int, mask func(t int) []uint32) (declined bool, interrupted int) {
	m := b.a.EdgeEvent(&b.clocks[i], &b.clocks[j])
	if m.Declined {
		return true, -1
	}
	interrupted = -1
	if m.Lag > 0 {
		interrupted = [2]int{i, j}[m.Behind]
		b.a.CatchUp(b.g.state[interrupted], m.Lag, b.g.alpha, b.g.eta)
	}
	c := mask(m.T)
	idx, n := b.g.index(c)
	posts := func(i int) (parts []device.Vector) {
		for _, v := range b.a.Posts(b.g.state[i]) {
			part := b.g.dev.NewVector(n)
			b.g.dev.Do(device.Gather(part, v, idx))
			parts = append(parts, part)
		}
		return parts
	}
	x, y := posts(i), posts(j)
	b.a.Deliver(b.g.state[i], x, y, idx)
	b.a.Deliver(b.g.state[j], y, x, idx)
	b.edges[m.T] = append(b.edges[m.T], [2]int{i, j})
	b.masks[[3]int{m.T, i, j}] = c
	if interrupted >= 0 {
		b.move(tb, interrupted, false)
	}
	return false, interrupted
}

// dualSum returns |Σ(dual + share·mail)|: lambda and beta, or ahead and beta/a_lambda.
func (b *eventSim) dualSum() float64 {
	sum := make([]float64, len(b.g.x(0)))
	name, share := "lambda", 0.0
	switch a := b.a.(type) {
	case Async:
		share = a.Beta
	case AsyncSTORM:
		name, share = "ahead", a.Beta/a.ALambda
	}
	for i := range b.clocks {
		dual, mail := b.g.aux(i, name), b.g.aux(i, "mail")
		for k := range sum {
			sum[k] += dual[k] + share*mail[k]
		}
	}
	return distance(sum, make([]float64, len(sum)))
}

var exactAsync = Async{SA: SA{Gamma: 0.4, Beta: 1}, Protocol: Protocol{Coef: Inverse, CMax: 10}}

// A trace on the golden problem with exact gradients, computed by hand and by an independent
// program. C i is the end of agent i's gradient, E i j an edge event with its mask.
func TestAsyncTrace(t *testing.T) {
	g := goldenGame(exactAsync)
	q := goldenQuadratics(3)
	g.grad = q.grad
	b := newBottle(g, exactAsync)
	for event := range strings.FieldsSeq("C0 C0 C1 E01:0,1 C0 C2 E12:1,2 C1 C3 C3 E03:0,2 C0 C2 C1 C3 C0") {
		if event[0] == 'C' {
			b.complete(t, int(event[1]-'0'))
			continue
		}
		var mask []uint32
		for c := range strings.SplitSeq(event[4:], ",") {
			k, err := strconv.Atoi(c)
			if err != nil {
				t.Fatal(err)
			}
			mask = append(mask, uint32(k))
		}
		b.meet(t, int(event[1]-'0'), int(event[2]-'0'), func(int) []uint32 { return mask })
	}
	for i, want := range []struct {
		gradients int
		x         string
	}{
		{5, "0.63805 0.36038 0.541125"}, {3, "1.074775 1.0335666667 1.9133333333"}, {2, "1.8 1.125975 0.79"}, {3,
			"1.1294166667 2.58 1.805"},
	} {
		if d := b.clocks[i]; d.T != 5 || d.G != want.gradients || d.Full {
			t.Errorf("agent %d: %+v, want time 5, %d gradients, an empty mailbox", i, d, want.gradients)
		}
		check(t, fmt.Sprint("x_", i), g.x(i), want.x)
	}
	check(t, "lambda_0", g.aux(0, "lambda"), "-0.555 -0.07 -1.3875")
	if s := b.dualSum(); s > 1e-15 {
		t.Errorf("|sum of lambda| = %g", s)
	}
}

// Replayed round by round in logical time, the events are synchronous FSPDA-SA with c·b as the
// factor of each gradient, and FSPDA-STORM with this factor on both gradients: every agent has the
// x of its own time. At every event the duals and the mail sum to zero.
func TestAsyncReplay(t *testing.T) {
	p := Protocol{Coef: Inverse, CMax: 10}
	storm := func(ax, al float64) STORM { return STORM{Gamma: 0.4, Beta: 0.8, AX: ax, ALambda: al} }
	for _, c := range []struct {
		async Asynchronous
		sync  Algorithm
	}{
		{Async{SA: SA{Gamma: 0.4, Beta: 0.8}, Protocol: p}, SA{Gamma: 0.4, Beta: 0.8}},
		{AsyncSTORM{storm(0.3, 0.2), p}, storm(0.3, 0.2)},
		{AsyncSTORM{storm(0.3, 0.3), p}, storm(0.3, 0.3)},
		{AsyncSTORM{storm(1, 1), p}, SA{Gamma: 0.4, Beta: 0.8}},
		{AsyncSTORM{storm(0.2, 1), p}, storm(0.2, 1)},
	} {
		t.Run(fmt.Sprintf("%s%+v", c.async.Name(), c.async), func(t *testing.T) { replayAsync(t, c.async, c.sync) })
	}
}

// replayAsync compares an asynchronous algorithm with the synchronous one that it is in logical
// time.
func replayAsync(t *testing.T, a Asynchronous, same Algorithm) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.play(a, q, 0.02, 0.015)
		b := newBottle(g, a)
		s := rng.New(w.seed, "events")
		for least := 0; least < 250; {
			if s.Float64() < 0.25 {
				e := w.graph[s.IntN(len(w.graph))]
				b.meet(t, e[0], e[1], func(t int) []uint32 { return w.mask(t, e[0], e[1]) })
			} else if i := s.IntN(w.n); s.IntN(1+i) == 0 { // up to n times slower
				b.complete(t, i)
			}
			least = b.clocks[0].T
			for _, d := range b.clocks {
				least = min(least, d.T)
			}
			if e := b.dualSum(); e > 1e-11 {
				t.Fatalf("|sum of duals and mail| = %g", e)
			}
		}
		sync := w.play(same, q, g.alpha, g.eta)
		sync.edges = func(t int) [][2]int { return b.edges[t] }
		sync.mask = func(t, i, j int) []uint32 { return b.masks[[3]int{t, i, j}] }
		sync.grad = func(t, i int, dst, x []float64) {
			q.grad(t, i, dst, x)
			for k := range dst {
				dst[k] *= b.coef[i][t]
			}
		}
		last := 0
		for i := range b.clocks {
			if b.clocks[i].Full { // the exchange of a pending gossip step is not yet part of x
				b.move(t, i, false)
			}
			last = max(last, b.clocks[i].T)
		}
		for it := range last {
			for i, d := range b.clocks {
				if d.T == it {
					if e := distance(g.x(i), sync.x(i)); e > 1e-12 {
						t.Errorf("agent %d at its time %d is %g from the synchronous algorithm", i, it, e)
					}
				}
			}
			sync.step(t, it)
		}
		for i, d := range b.clocks {
			if e := distance(g.x(i), sync.x(i)); d.T == last && e > 1e-12 {
				t.Errorf("agent %d at its time %d is %g from the synchronous algorithm", i, last, e)
			}
		}
	})
}

// With all agents at the same time, one exchange per round and no interruption, the protocol is
// synchronous FSPDA-SA.
func TestAsyncInStepIsSA(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		w.many = false
		a := Async{SA: SA{Gamma: 0.4, Beta: 0.8}, Protocol: Protocol{Coef: Inverse, CMax: 10}}
		b := newBottle(w.play(a, q, 0.02, 0.015), a)
		g := w.play(SA{Gamma: 0.4, Beta: 0.8}, q, 0.02, 0.015)
		rounds := w.play(a, q, 0.02, 0.015)
		for it := range 300 {
			e := w.edges(it)[0]
			if declined, cut := b.meet(t, e[0], e[1],
				func(t int) []uint32 { return w.mask(t, e[0], e[1]) }); declined || cut >= 0 {
				t.Fatal("declined or interrupted in step")
			}
			for i := range w.n {
				b.complete(t, i)
			}
			g.step(t, it)
			rounds.step(t, it)
			for i := range w.n {
				if e := distance(b.g.x(i), g.x(i)); e > 1e-12 {
					t.Fatalf("round %d: agent %d is %g from FSPDA-SA", it, i, e)
				}
				if distance(rounds.x(i), g.x(i)) != 0 {
					t.Fatalf("round %d: Async played in rounds is not SA", it)
				}
			}
		}
	})
}

// Without edge events it is n independent gradient descents.
func TestAsyncAlone(t *testing.T) {
	w := randomWorld(3, 0)
	s := rng.New(3, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	b := newBottle(w.play(exactAsync, q, 0.1, 0.05), exactAsync)
	for i := range w.n {
		x, gi := make([]float64, w.d), make([]float64, w.d)
		for it := range 50 {
			b.complete(t, i)
			q.grad(it, i, gi, x)
			for k := range x {
				x[k] -= 0.1 * gi[k]
			}
		}
		if e := distance(b.g.x(i), x); e > 1e-14 {
			t.Errorf("agent %d is %g from descent", i, e)
		}
	}
}

func TestAsyncProtocol(t *testing.T) {
	a := Async{SA: SA{Gamma: 0.5, Beta: 1}, Protocol: Protocol{Coef: Inverse, CMax: 3}}
	i, j := LogicalClock{T: 9, G: 2}, LogicalClock{T: 4, G: 4}
	if m := a.EdgeEvent(&i, &j); m.Declined || m.T != 9 || m.Lag != 5 || m.Behind != 1 {
		t.Errorf("%+v", m)
	}
	if m := a.EdgeEvent(&i, &LogicalClock{}); !m.Declined {
		t.Error("a full mailbox took another exchange")
	}
	if m := a.EdgeEvent(&LogicalClock{}, &j); !m.Declined {
		t.Error("a full mailbox took another exchange")
	}
	if st := a.Finish(&j, false); !st.Gossip || st.Q != 1 || st.C != 0 || j.T != 10 || j.G != 4 || j.Full {
		t.Errorf("%+v, %+v", st, j)
	}
	// 10/3, at most CMax
	if st := a.Finish(&i, true); !st.Gossip || st.C != 3 || i.T != 10 || i.G != 3 {
		t.Errorf("%+v, %+v", st, i)
	}
	for coef, want := range map[Coefficient]float64{Inverse: 11. / 4, One: 1, Printed: 4. / 11} {
		d := i
		if st := (Async{Protocol: Protocol{Coef: coef, CMax: 3}}).Finish(&d, true); st.Gossip ||
			math.Abs(st.C-want) > 1e-15 {
			t.Errorf("%s: %+v, want c = %v", coef, st, want)
		}
	}
}

// With agents of very different speed, the default coefficient comes near the optimum; equal
// weights settle elsewhere, and the coefficient printed in the paper's appendix still further away.
func TestAsyncCoefficient(t *testing.T) {
	w := world{seed: 4, n: 6, d: 4, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {0, 5}, {0, 3}}}
	s := rng.New(4, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	slowness := []int{1, 1, 1, 3, 5, 12}
	away := map[Coefficient]float64{}
	for _, coef := range []Coefficient{Inverse, One, Printed} {
		away[coef] = asyncDistance(t, w, q, slowness, Protocol{Coef: coef, CMax: 100})
	}
	if !(away[Inverse] < 0.05 && away[Inverse] < away[One]/5 && away[One] < away[Printed]) {
		t.Errorf("distances from the optimum: %v", away)
	}
}

// asyncDistance returns how far the mean model of an asynchronous run ends from the optimum,
// averaged over its last part.
func asyncDistance(t *testing.T, w world, q quadratics, slowness []int, p Protocol) float64 {
	t.Helper()
	b := newBottle(w.play(Async{SA: SA{Gamma: 0.5, Beta: 1}, Protocol: p}, q, 0.002, 0.001), Async{SA: SA{Gamma: 0.5,
		Beta: 1}, Protocol: p})
	e := rng.New(w.seed, "events")
	sum, n := make([]float64, w.d), 0
	for b.clocks[0].T < 20000 {
		if e.Float64() < 0.2 {
			edge := w.graph[e.IntN(len(w.graph))]
			b.meet(t, edge[0], edge[1], func(int) []uint32 { return nil })
		} else if i := e.IntN(w.n); e.IntN(slowness[i]) == 0 {
			b.complete(t, i)
		}
		if b.clocks[0].T > 12000 {
			for k, v := range mean(w.n, b.g.x) {
				sum[k] += v
			}
			n++
		}
	}
	for k := range sum {
		sum[k] /= float64(n)
	}
	return distance(sum, q.optimum())
}

// A limit of the coefficient below what a straggler needs biases the run towards the other agents:
// 10, as the limit once was, and 24, as it is by default with straggler(12).
func TestAsyncLimitBiasesStragglers(t *testing.T) {
	w := world{seed: 4, n: 6, d: 4, graph: [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {0, 5}, {0, 3}}}
	s := rng.New(4, "quadratics")
	q := randomQuadratics(&s, w.n, w.d)
	away := map[float64]float64{}
	for _, limit := range []float64{10, 24} {
		away[limit] = asyncDistance(t, w, q, []int{1, 1, 1, 1, 1, 12}, Protocol{Coef: Inverse, CMax: limit})
	}
	t.Logf("distances from the optimum by limit: %v", away)
	if !(away[24] < 0.05 && away[10] > 0.3) {
		t.Errorf("distances from the optimum by limit: %v", away)
	}
}
