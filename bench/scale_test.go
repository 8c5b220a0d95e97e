package bench

import (
	"math"
	"testing"

	"fspda/dist"
)

// Whatever is asked for, rounds stay whole, evaluations lie between them, and both are near.
func TestWholeRounds(t *testing.T) {
	for _, iterations := range []int{300, 2000, 20000, 1_000_000} {
		for _, points := range []int{1, 10, 50, 500} {
			for _, steps := range []int{1, 2, 11, 21, 75, 150} {
				n, p := wholeRounds(iterations, points, steps)
				if n%steps != 0 || n/steps%p != 0 {
					t.Fatalf("wholeRounds(%d, %d, %d) = %d, %d: an evaluation lies inside a round", iterations, points,
						steps, n, p)
				}
				if rounds := iterations / steps; rounds >= 10*points &&
					(math.Abs(float64(n)/float64(iterations)-1) > 0.05 || p < points/2 || p > 2*points) {
					t.Errorf("wholeRounds(%d, %d, %d) = %d, %d", iterations, points, steps, n, p)
				}
			}
		}
	}
}

// Retuning keeps what the figure is about: the sum of all steps, the limit of the duals, and each
// algorithm's share of the bits.
func TestRetune(t *testing.T) {
	f, err := FindFigure("1")
	if err != nil {
		t.Fatal(err)
	}
	jobs := func(s Scale) map[string]Job {
		all, err := f.Jobs(Options{Variant: "released", Scale: s})
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]Job{}
		for _, j := range all {
			m[j.Name] = j
		}
		return m
	}
	full, small := jobs(Scale{Share: 1}), jobs(Scale{Share: 0.02, Retune: true})
	for name, j := range full {
		a, b := j.Config, small[name].Config
		if before, after := a.Alpha*float64(a.Iterations), b.Alpha*float64(b.Iterations); math.Abs(
			after/before-1) > 0.03 {
			t.Errorf("%s: the sum of steps went from %v to %v", name, before, after)
		}
		if name == "swarm" {
			continue
		}
		if r := rate(b.Edges, b.LocalSteps, b.Density) / rate(a.Edges, a.LocalSteps,
			a.Density); math.Abs(r/math.Sqrt(50)-1) > 0.04 {
			t.Errorf("%s exchanges %.3f times as much, want √50 times", name, r)
		}
	}
	sa, old := small["sa"].Config, full["sa"].Config
	if got, want := sa.Alpha/sa.Eta.V, old.Alpha/old.Eta.V; math.Abs(got/want-1) > 1e-3 {
		t.Errorf("alpha/eta of FSPDA-SA went from %v to %v", want, got)
	}
	storm := small["storm"].Config // its eta would leave the region in which duals settle
	g, err := dist.ParseGraph(storm.Graph, storm.Agents, 1)
	if err != nil {
		t.Fatal(err)
	}
	critical := 0.25 * g.Spectrum()[1] * storm.Density / 4 // times the rate of an edge, which differs under round robin
	if got := storm.Eta.V * storm.Beta; got > 10*critical/10 || got < 10*critical/25 {
		t.Errorf("eta·beta of FSPDA-STORM is %v, critical damping at rate 1 %v", got, critical)
	}
	if got := small["swarm"].Config; got.Compress != "lattice(0.0007071,256)" || got.Edges != "matching" {
		t.Errorf("Swarm has %s over %s", got.Compress, got.Edges)
	}
	plain := jobs(Scale{Share: 0.02})
	if a, b := plain["choco"].Config, full["choco"].Config; a.Alpha != b.Alpha || a.Density != b.Density ||
		a.Theta != b.Theta || a.Iterations != 20000 || a.EvalPoints != 50 {
		t.Errorf("without retuning CHOCO is %+v", a)
	}
}

// The duals of figure 7 are far below critical damping. A short run has as many of their time
// constants gamma/(eta·beta) as the long one, although alpha·T cannot be preserved.
func TestRetuneKeepsDualTime(t *testing.T) {
	f, err := FindFigure("7")
	if err != nil {
		t.Fatal(err)
	}
	for share, want := range map[float64]float64{0.1: 5e-5, 0.001: 5e-3, 0.0001: 0.01389} { // the last: critical
		jobs, err := f.Jobs(Options{Variant: "released", Scale: Scale{Share: share, Retune: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if j.Name == "sa-dense" && j.Config.Eta.V != want {
				t.Errorf("scale %v: eta %v, want %v", share, j.Config.Eta.V, want)
			}
			if j.Name == "sa-dense" && j.Config.Alpha > 0.005+1e-12 {
				t.Errorf("scale %v: alpha %v is above the largest effective step", share, j.Config.Alpha)
			}
		}
	}
}

// Random exchanges of 1 % make the duals of figure 7 grow above gamma² times an agent's rate of
// exchange, 0.25·9/45·0.01: retuning must stay there, which is also the figure's own eta.
func TestRetuneKeepsDualsStable(t *testing.T) {
	f, err := FindFigure("7")
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []float64{0.1, 0.01, 0.001} {
		jobs, err := f.Jobs(Options{Variant: "released", Only: []string{"sa-1"},
			Scale: Scale{Share: share, Retune: true}})
		if err != nil {
			t.Fatal(err)
		}
		if eta := jobs[0].Config.Eta.V; eta != 5e-4 {
			t.Errorf("scale %v: eta %v, want 0.0005", share, eta)
		}
	}
}

// rate is what an algorithm exchanges, up to a factor of its own.
func rate(edges string, steps int, density float64) float64 {
	if _, p := probability(edges); p > 0 {
		return p
	}
	if steps > 0 {
		return 1 / float64(steps)
	}
	return density
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 1.23456e-7: 1.235e-7, 0.1 * 0.0707106: 0.007071, 12345: 12350} {
		if got := digits(v); math.Abs(got-want) > 1e-12*want {
			t.Errorf("digits(%v) = %v, want %v", v, got, want)
		}
	}
}

// The warm-up of figure 2 is shortened with the run: five epochs would be longer than a run of one.
func TestScaleShortensWarmup(t *testing.T) {
	f, err := FindFigure("2")
	if err != nil {
		t.Fatal(err)
	}
	for share, want := range map[float64]float64{1: 5, 0.2: 1, 0.01: 0.05} {
		jobs, err := f.Jobs(Options{Variant: "released", Scale: Scale{Share: share}})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if j.Config.Warmup != want {
				t.Errorf("scale %v, %s: %v epochs of warm-up, want %v", share, j.Name, j.Config.Warmup, want)
			}
		}
	}
}

// An evaluation of a shortened run of a large network costs at most as much as the training before
// it; a run of full length, and the figures with an MLP, keep theirs.
func TestScaleLimitsEvaluations(t *testing.T) {
	f, err := FindReplay("relaysgd")
	if err != nil {
		t.Fatal(err)
	}
	for share, want := range map[float64]int{1: 0, 0.1: 0, 0.01: 3 * 19 * 32, 0.0001: minEvalTest} {
		jobs, err := f.Jobs(Options{Scale: Scale{Share: share}})
		if err != nil {
			t.Fatal(err)
		}
		if got := jobs[0].Config.EvalTest; got != want {
			t.Errorf("scale %v: %d test examples, want %d", share, got, want)
		}
	}
	for name, change := range map[string]bool{"1": false, "2": true} {
		f, err := FindFigure(name)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := f.Jobs(Options{Variant: "released", Scale: Scale{Share: 0.00001}})
		if err != nil {
			t.Fatal(err)
		}
		c := jobs[0].Config
		if got := c.EvalTest > 0 && c.BNBatches <= c.Agents; got != change {
			t.Errorf("figure %s: %d test examples, %d batches for batch norms", name, c.EvalTest, c.BNBatches)
		}
	}
}
