package algo

import (
	"slices"
	"testing"
)

// Exponential averages of gradient descent without exchanges, of another program.
func TestGoldenAverage(t *testing.T) {
	a := Averaged{DSGD{}, Average{Decay: 0.9}}
	games, objectives := goldenGames(a)
	want := [3]string{"0.42689341 0.34414164 0 7.90937596 0.46875581 0.36917361 0",
		"-1.57460752 1.66437775 0.30476177 12.88208967",
		"-1.2837622450 -0.5002883628 0.5518577096 " +
			"5.7678461110 -1.3797353979 -0.5308245734 0.5789115703"}
	for p, g := range games {
		g.edges = func(int) [][2]int { return nil }
		for it := range goldenSteps[p] {
			g.step(t, it)
		}
		average := func(i int) []float64 { return g.aux(i, AverageName) }
		got := append(slices.Clone(average(0)[:3]), objectives[p](mean(len(g.state), average)))
		if p != 1 {
			got = append(got, g.x(0)[:3]...)
		}
		compare(t, p, got, want[p])
	}
}

// An average leaves the models of every algorithm alone, to the bit, and follows its recursion.
func TestAveragesObserve(t *testing.T) {
	for name, average := range map[string]Average{"ema": {Decay: 0.8}, "tail": {After: 7}} {
		t.Run(name, func(t *testing.T) {
			forTable(t, all, func(t *testing.T, e entry) {
				forWorlds(t, func(t *testing.T, w world, q quadratics) {
					observes(t, e.play(w, q, 0.02, 0.01), e.play(w, q, 0.02, 0.01), average)
				})
			})
		})
	}
}

// observes plays two equal games, of which the second gets the average.
func observes(t *testing.T, plain, g *game, average Average) {
	t.Helper()
	want, sums := make([][]float64, len(g.state)), make([][]float64, len(g.state))
	g.algo = Averaged{g.algo, average}
	for i, s := range g.state {
		s.average = g.dev.NewVector(len(g.x(i)))
		s.Aux = append(s.Aux, s.average)
		s.copy(s.average, s.X) // [State.Connect] does the same.
		want[i], sums[i] = slices.Clone(g.x(i)), make([]float64, len(g.x(i)))
	}
	for it := range 16 {
		plain.step(t, it)
		g.step(t, it)
		r := min(average.Decay, float64(2+it)/float64(11+it))
		for i := range g.state {
			if !slices.Equal(g.x(i), plain.x(i)) {
				t.Fatalf("iteration %d: the model of agent %d differs from that without an average", it, i)
			}
			for k, x := range g.x(i) {
				switch {
				case average.Decay > 0:
					want[i][k] = r*want[i][k] + (1-r)*x
				case it+1 <= average.After:
					want[i][k] = x
				default:
					sums[i][k] += x
					want[i][k] = sums[i][k] / float64(it+1-average.After)
				}
			}
			size := 1 + distance(want[i], make([]float64, len(want[i])))
			if d := distance(g.aux(i, AverageName), want[i]); !(d < 1e-12*size) {
				t.Fatalf("iteration %d: the average of agent %d is %v, want %v", it, i, g.aux(i, AverageName), want[i])
			}
		}
	}
}
