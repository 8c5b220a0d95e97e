package algo

import (
	"slices"
	"testing"
)

// scheduleFreeOf is the optimizer with AdamW's averages of squares, or without, and weight decay.
func scheduleFreeOf(squares bool, rate float64, except ...uint32) Descent {
	o := ScheduleFree{Beta: 0.9, Base: Plain{}}
	if squares {
		o.Base = unsmoothed{AdamW{Beta2: 0.99, Eps: 1e-8}}
	}
	d := Descent{Opt: o}
	if rate > 0 {
		d.Decay = &Decay{Rate: rate, Except: except}
	}
	return d
}

// warmed gives a game a warm-up of an iteration at half the step size.
func warmed(g *game, t int) { g.alpha = 0.1 * min(1, float64(t+1)/2) }

// Trajectories of another program: the evaluated model of agent 0, the objective at the mean of these
// models, and the model of agent 0 at which it takes gradients.
func TestGoldenScheduleFree(t *testing.T) {
	for name, c := range map[string]struct {
		descent Descent
		start   float64
		want    [3]string
	}{
		"sgd": {scheduleFreeOf(false, 0), 0, [3]string{"0.29650872 0.26231457 0 10.11849096 0.31295504 0.27497055 0",
			"-1.11219623 1.29391804 0.22256258 12.99913390",
			"-0.9429991040 -0.3899529810 0.4537585871 " +
				"6.0502352478 -1.0029399423 -0.4126822742 0.4778568794"}},
		"adamw": {scheduleFreeOf(true, 0.01), 2, [3]string{
			"1.69048099 1.68278116 1.67906117 5.56779951 1.67210813 1.66345697 1.65928106",
			"1.57460182 2.24764444 1.59221528 18.65055097",
			"1.4322201200 1.4407127293 1.4676769187 " +
				"10.0164034089 1.3877338364 1.3975539254 1.4288195382"}},
	} {
		t.Run(name, func(t *testing.T) {
			games, objectives := goldenGames(Averaged{SGD{Descent: c.descent}, c.descent.Opt.(ScheduleFree)})
			for p, g := range games {
				alone(g)
				for _, s := range g.state {
					for k := range values(s.X) {
						values(s.X)[k] = c.start
					}
					s.copy(s.average, s.X)
				}
				for it := range goldenSteps[p] {
					warmed(g, it)
					g.step(t, it)
				}
				average := func(i int) []float64 { return g.aux(i, AverageName) }
				got := append(slices.Clone(average(0)[:3]), objectives[p](mean(len(g.state), average)))
				if p != 1 {
					got = append(got, g.x(0)[:3]...)
				}
				compare(t, p, got, c.want[p])
			}
		})
	}
}

// The steps are the textbook's, y ← (1-beta)·z + beta·x with z and x of their own, also with
// coordinates that do not decay.
func TestScheduleFreeTextbook(t *testing.T) {
	const rate, beta = 0.05, 0.9
	d := scheduleFreeOf(false, rate, 1)
	games, _ := goldenGames(Averaged{SGD{Descent: d}, d.Opt.(ScheduleFree)})
	g := games[1]
	alone(g)
	z := slices.Clone(g.x(2))
	x, sum := slices.Clone(z), 0.0
	for it := range 12 {
		warmed(g, it)
		y, grad := slices.Clone(g.x(2)), make([]float64, len(z))
		g.grad(it, 2, grad, y)
		g.step(t, it)
		sum += g.alpha * g.alpha
		c := g.alpha * g.alpha / sum
		for k := range z {
			decay := rate * y[k]
			if k == 1 {
				decay = 0
			}
			z[k] -= g.alpha * (grad[k] + decay)
			x[k] = (1-c)*x[k] + c*z[k]
			y[k] = (1-beta)*z[k] + beta*x[k]
		}
		for what, pair := range map[string][2][]float64{"y": {g.x(2), y}, "z": {g.aux(2, "z"), z},
			"x": {g.aux(2, AverageName), x}} {
			if e := distance(pair[0], pair[1]); !(e < 1e-14) {
				t.Fatalf("iteration %d: %s is %v, want %v", it, what, pair[0], pair[1])
			}
		}
	}
}

// Rounds of one local step, with means of both models, are the central run, because the steps are
// linear in gradients. Longer rounds leave all agents with the same three models.
func TestScheduleFreeRounds(t *testing.T) {
	of := func(a Algorithm, d Descent) *game {
		games, _ := goldenGames(Averaged{a, d.Opt.(ScheduleFree)})
		g := games[0]
		g.edges = func(int) [][2]int { return world{n: len(g.state)}.complete() }
		return g
	}
	local := func(h int, d Descent) LocalSGD {
		return LocalSGD{DiLoCo{H: h, Rate: 1, Moments: Moments{First: 1}, Descent: d}}
	}
	d := scheduleFreeOf(false, 0.01)
	central, rounds := of(SGD{Descent: d}, d), of(local(1, d), d)
	for it := range 8 {
		for _, g := range []*game{central, rounds} {
			warmed(g, it)
			g.step(t, it)
		}
		for _, name := range []string{"z", AverageName} {
			if e := distance(central.aux(1, name), rounds.aux(1, name)); !(e < 1e-14) {
				t.Fatalf("iteration %d: %s differs from the central run's by %g", it, name, e)
			}
		}
	}
	for _, squares := range []bool{false, true} {
		d := scheduleFreeOf(squares, 0.01)
		g := of(local(3, d), d)
		atEnds(g, 3)
		for it := range 9 {
			warmed(g, it)
			g.step(t, it)
		}
		for i := 1; i < len(g.state); i++ {
			if !slices.Equal(g.x(0), g.x(i)) || !slices.Equal(g.aux(0, "z"), g.aux(i, "z")) ||
				!slices.Equal(g.aux(0, AverageName), g.aux(i, AverageName)) {
				t.Errorf("agent %d ends a round with other models than agent 0", i)
			}
		}
	}
}
