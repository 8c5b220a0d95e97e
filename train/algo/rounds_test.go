package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/device"
)

// goldenRow is a trajectory that another program computed in float64, on the golden problems: some
// coordinates of the model of agent 0, the objective at the mean model, on the first and third
// problem the same coordinates of another vector of agent 0, and on the first the bits.
type goldenRow struct {
	name string
	algo Algorithm
	d    [3]int // 0: 3, 4 and 5.
	at   []int  // nil: the first three.
	T    [3]int // The numbers of iterations; 0: as in goldenSteps.
	game func(g *game)
	bits [3]uint64
	of   func(s *State) device.Vector
	want [3]string
}

func aux(k int) func(s *State) device.Vector {
	return func(s *State) device.Vector { return s.Aux[k] }
}

func opt(k int) func(s *State) device.Vector {
	return func(s *State) device.Vector { return s.Opt[k] }
}

func (c goldenRow) check(t *testing.T) {
	if c.d[0] == 0 {
		c.d = [3]int{3, 4, 5}
	}
	if c.at == nil {
		c.at = []int{0, 1, 2}
	}
	length := c.T
	if length[0] == 0 {
		length = goldenSteps
	}
	for p := range c.d {
		games, objectives := muonGames(c.algo, c.d[p])
		g := games[p]
		c.game(g)
		for it := range length[p] {
			g.step(t, it)
		}
		var got []float64
		for _, k := range c.at {
			got = append(got, g.x(0)[k])
		}
		got = append(got, objectives[p](mean(len(g.state), g.x)))
		if p != 1 && c.of != nil {
			for _, k := range c.at {
				got = append(got, values(c.of(g.state[0]))[k])
			}
		}
		compare(t, p, got, c.want[p])
		if bits := g.bits(); p == 0 && bits != c.bits {
			t.Errorf("bits %d, want %d", bits, c.bits)
		}
	}
}

// Trajectories of methods of rounds that average moving averages.
func TestGoldenRounds(t *testing.T) {
	adam := Descent{Opt: AdamW{0.9, 0.99, 1e-8}, Decay: &Decay{Rate: 0.01}}
	for _, c := range []goldenRow{
		{name: "local adam", algo: LocalSGD{DiLoCo{H: 2, Rate: 1, Moments: Moments{1, 1}, Descent: adam}},
			game: everyPair, bits: same(5184), of: opt(1), want: [3]string{"2.22625470 2.17582109 2.16247587 " +
				"5.39102256 0.11816330 0.49042647 0.46998881", "1.59297941 1.47731369 1.70840734 16.97587913",
				"1.0468784592 1.2181991316 1.0964475432 " +
					"7.6797182455 0.9522512946 0.7088900984 0.7904352208"}},
		{name: "des-loc", algo: DESLOC{LocalSGD{DiLoCo{H: 2, Rate: 1, Moments: Moments{2, 3}, Descent: adam}}},
			game: everyPair, bits: same(2880), of: opt(1), want: [3]string{"2.30599945 2.31647217 2.41860498 " +
				"5.18988517 0.12218658 0.48537132 0.47189157", "1.44551077 1.31678749 1.70760208 15.95598793",
				"0.9231436378 0.9758976817 0.8962448489 " +
					"6.9801879872 1.0687727204 0.7253037362 0.5524391004"}},
	} {
		t.Run(c.name, c.check)
	}
}

// inThree exchanges the coordinates ≡ f modulo 3 in the f-th of three rounds of 2.
func inThree(g *game) {
	everyPair(g)
	d := len(g.x(0))
	g.mask = func(t, _, _ int) (c []uint32) {
		for k := t / 2 % 3; k < d; k += 3 {
			c = append(c, uint32(k))
		}
		return c
	}
}

// Trajectories of streaming DiLoCo. In two accountings its bits have indices.
func TestGoldenStreaming(t *testing.T) {
	adam := Descent{Opt: AdamW{0.9, 0.99, 1e-8}, Decay: &Decay{Rate: 0.01}}
	bits := [3]uint64{1152, 1152 + 6*3*2, 2304}
	for _, c := range []goldenRow{
		{name: "at once", algo: StreamingDiLoCo{Every: 2, Rate: 0.7, Mu: 0.9, Descent: adam}, T: [3]int{12, 12, 16},
			game: inThree, bits: bits, of: aux(0), want: [3]string{"1.87550584 2.41299191 2.31993080 5.21051921 " +
				"2.27351825 2.61779375 2.31993080", "1.17039396 1.21387108 1.55486806 15.08499699",
				"-0.1843316724 0.6252077807 0.2333502678 " +
					"5.6529206105 -0.0059572891 0.6252077807 0.4014704839"}},
		{name: "delayed", algo: StreamingDiLoCo{Every: 2, Rate: 0.7, Mu: 0.9, Delay: 1, Own: 0.5, Descent: adam},
			T: [3]int{12, 12, 16}, game: inThree, bits: bits, of: aux(0), want: [3]string{"1.49690759 1.80982398 " +
				"1.24448014 5.25083126 2.24483438 2.53342705 2.16861673",
				"1.10321573 1.79169679 1.08911838 15.90158171",
				"0.2760871779 0.6448167479 0.4745782915 " +
					"6.3362910500 0.2680390868 1.2285694709 0.5331726791"}},
		{name: "rounds delayed", algo: LateDiLoCo{DiLoCo: DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Descent: adam}},
			game: everyPair, bits: same(1728), of: aux(1), want: [3]string{"2.18280972 2.30397499 2.18245738 " +
				"5.34490733 -0.10365685 -0.17881574 -0.10343860", "1.58586709 1.30201445 1.75198428 16.19218480",
				"0.2295997171 0.8395089996 0.2914871740 " +
					"5.8721227003 0.6670287784 0.4106215320 0.6467034398"}},
		{name: "rounds eager", algo: LateDiLoCo{Eager: true, DiLoCo: DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Descent: adam}},
			game: func(g *game) {
				everyPair(g)
				a := g.algo.(LateDiLoCo)
				a.Agents = len(g.state)
				g.algo = a
			}, bits: same(1728), of: aux(1), want: [3]string{"2.04720679 2.18162781 2.04622130 5.32429250 " +
				"-0.05200077 -0.13726414 -0.05150637", "1.47164345 1.40730612 1.63692460 15.89549972",
				"0.1342055539 0.7598491495 0.2176442017 " +
					"5.8157983169 0.6800689033 0.4161020931 0.6496919522"}},
	} {
		t.Run(c.name, c.check)
	}
}

// One agent whose own change counts at once is DiLoCo. Of many agents, delayed slow models are
// equal to the bit, and eager ones differ. An agent made anew posts the same message again.
func TestLateOuterSteps(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		const h = 3
		inner := DiLoCo{H: h, Rate: 0.4, Mu: 0.5, Descent: heavyBall(0.5)}
		of := func(a Algorithm, w world) *game {
			g := outerWorld(a, w, q, h)
			g.share = w.seed%2 == 0
			return g
		}
		one := w
		one.n = 1
		alone, eagerAlone := of(inner, one), of(LateDiLoCo{Eager: true, Agents: 1, DiLoCo: inner}, one)
		delayed := of(LateDiLoCo{Agents: w.n, DiLoCo: inner}, w)
		eager := of(LateDiLoCo{Eager: true, Agents: w.n, DiLoCo: inner}, w)
		alone.share, eagerAlone.share = false, false
		for it := range 30 {
			for _, g := range []*game{alone, eagerAlone, delayed, eager} {
				g.step(t, it)
			}
			if e := distance(alone.x(0), eagerAlone.x(0)); e > 1e-12 {
				t.Fatalf("iteration %d: one eager agent is %g from DiLoCo", it, e)
			}
			if (it+1)%h != 0 {
				continue
			}
			for i := range w.n {
				if !slices.Equal(delayed.x(i), delayed.x(0)) {
					t.Fatalf("iteration %d: delayed agent %d has another slow model than agent 0", it, i)
				}
				if it > h && slices.Equal(eager.x(i), eager.x((i+1)%w.n)) {
					t.Fatalf("iteration %d: eager agent %d has the slow model of the next", it, i)
				}
			}
			checkRepost(t, delayed)
			checkRepost(t, eager)
		}
	})
}

// Averages of agents alike change nothing; the mean of the first average follows the mean gradient
// whatever its period is; the second one is the mean of squares, and no square of a mean.
func TestMomentsFollowTheirMeans(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		const h, beta1, beta2 = 2, 0.9, 0.99
		descent := Descent{Opt: AdamW{beta1, beta2, 1e-3}}
		for _, m := range []Moments{{}, {1, 1}, {2, 3}, {0, 1}} {
			g := outerWorld(LocalSGD{DiLoCo{H: h, Rate: 1, Moments: m, Descent: descent}}, w, q, h)
			g.share = w.seed%2 == 0
			x, first, second := zeros(w.n, w.d), zeros(w.n, w.d), zeros(w.n, w.d)
			average, grad := make([]float64, w.d), make([]float64, w.d)
			for it := range 24 {
				step := make([]float64, w.d)
				for i := range x {
					copy(x[i], g.x(i))
					g.grad(it, i, grad, x[i])
					for k, v := range grad {
						step[k] += v / float64(w.n)
						first[i][k] = beta1*first[i][k] + (1-beta1)*v
						second[i][k] = beta2*second[i][k] + (1-beta2)*v*v
					}
				}
				for k := range average {
					average[k] = beta1*average[k] + (1-beta1)*step[k]
				}
				g.step(t, it)
				round := (it + 1) / h
				if end := (it+1)%h == 0; end && m.First > 0 && round%m.First == 0 {
					spread(first)
				}
				if end := (it+1)%h == 0; end && m.Second > 0 && round%m.Second == 0 {
					spread(second)
				}
				for i, s := range g.state {
					if e := distance(values(s.Opt[0]), first[i]) + distance(values(s.Opt[1]), second[i]); e > 1e-12 {
						t.Fatalf("%v, iteration %d: the averages of agent %d are %g off", m, it, i, e)
					}
				}
				mean := mean(w.n, func(i int) []float64 { return values(g.state[i].Opt[0]) })
				if e := distance(mean, average); e > 1e-12 {
					t.Fatalf("%v, iteration %d: the mean of exp_avg is %g off", m, it, e)
				}
			}
		}
	})
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		for i := range q.h {
			q.h[i], q.b[i] = q.h[0], q.b[0]
		}
		of := func(m Moments) *game {
			g := outerWorld(DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Moments: m, Descent: adamW(false)}, w, q, 2)
			g.grad = q.grad
			for it := range 20 {
				g.step(t, it)
			}
			return g
		}
		if e := distance(of(Moments{}).x(0), of(Moments{1, 2}).x(0)); e > 1e-12 {
			t.Errorf("agents that are alike end %g apart", e)
		}
	})
}

// spread sets all vectors to their mean.
func spread(v [][]float64) {
	m := mean(len(v), func(i int) []float64 { return v[i] })
	for i := range v {
		copy(v[i], m)
	}
}

// With different data, averages of the agents' own keep AdamW from the optimum, and averages in
// common do not.
func TestAveragedMomentsReachTheOptimum(t *testing.T) {
	away := func(m Moments) float64 {
		g := goldenGameAt(LocalSGD{DiLoCo{H: 1, Rate: 1, Moments: m, Descent: Descent{Opt: AdamW{0.9, 0.99, 1e-8}}}}, 2)
		g.edges = func(int) [][2]int { return world{n: 4}.complete() }
		g.mask = func(int, int, int) []uint32 { return nil }
		q := goldenQuadratics(3)
		g.grad = q.grad
		const T = 4000
		for it := range T {
			g.alpha = 0.05 * (1 + math.Cos(math.Pi*float64(it)/T))
			g.step(t, it)
		}
		return distance(g.x(0), q.optimum())
	}
	if own, common := away(Moments{}), away(Moments{1, 1}); own < 0.1 || common > 1e-3 {
		t.Errorf("%g from the optimum with averages of the agents' own, and %g with common ones", own, common)
	}
}
