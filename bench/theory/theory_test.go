package theory

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/train/algo"
)

// The minimum of the problem is where it is said to be, whatever the heterogeneity; gradients there
// are zero on average and of the size zeta for one agent, and noise has the size sigma.
func TestProblem(t *testing.T) {
	for _, zeta := range []float64{0, 1, 8} {
		p := Problem{N: 64, D: 64, Noise: 2, Hetero: zeta, Seed: 3}
		p.prepare()
		norm := 0.0
		for _, v := range p.star {
			norm += v * v
		}
		if s := p.stationarity(p.star); s > 1e-25*(1+zeta*zeta) || math.Abs(norm-1) > 1e-12 {
			t.Errorf("zeta %g: |∇F(x*)|² is %g, |x*|² %g", zeta, s, norm)
		}
		var own, noisy float64
		g, exact := make([]float64, p.D), make([]float64, p.D)
		for i := range p.N {
			clear(exact)
			p.gradient(exact, i, p.star, 1)
			p.noisy(g, 1, 5, i, p.star, p.Noise)
			for k, v := range exact {
				own += v * v / float64(p.N)
				noisy += (g[k] - v) * (g[k] - v) / float64(p.N)
			}
		}
		if math.Abs(noisy-4) > 0.4 || own < 0.8*zeta*zeta || own > 1.5*zeta*zeta {
			t.Errorf("zeta %g: |∇f_i(x*)|² is %g, the variance of the noise %g", zeta, own, noisy)
		}
	}
}

// Without noise FSPDA-SA ends at the minimum that agents have in common, and DSGD does not. One
// agent per seed has the same trajectory.
func TestRun(t *testing.T) {
	c := base(agents, 4000, "ring", "one-edge", 0.5)
	c.Noise, c.Alpha, c.From, c.RunSeed = 0, 0.02, 0.95, 7
	exact, err := c.Run(context.Background())
	if err != nil || exact.GradSq > 1e-7 || exact.Consensus > 1e-6 {
		t.Errorf("FSPDA-SA ends at %+v, %v", exact, err)
	}
	again, _ := c.Run(context.Background())
	if again != exact {
		t.Errorf("the same seed gives %+v and %+v", exact, again)
	}
	c.Algorithm = algo.DSGD{Theta: gamma}
	if biased, err := c.Run(context.Background()); err != nil || biased.GradSq < 1e-5 {
		t.Errorf("DSGD ends at %+v, %v", biased, err)
	}
	c.Alpha = 50
	if r, err := c.Run(context.Background()); err != nil || !math.IsInf(r.GradSq, 1) {
		t.Errorf("a run that diverges gives %+v, %v", r, err)
	}
	c.Graph = "none"
	if _, err := c.Run(context.Background()); err == nil {
		t.Error("an unknown graph is taken")
	}
}

// SGD on the mean gradient has the error that theory gives for a quadratic: the noise alone makes
// alpha·h·sigma²/(n·(2-alpha·h)) in each direction of curvature h.
func TestCentral(t *testing.T) {
	c := base(4, 60000, "complete", "full", 1)
	c.Alpha, c.From, c.Central, c.RunSeed = 0.1, 0.1, true, 1
	r, err := c.Run(context.Background())
	c.prepare()
	want := 0.0
	for k := range c.D {
		h := 0.0
		for i := range c.N {
			h += c.h[i][k] / float64(c.N)
		}
		want += c.Alpha * h * noise * noise / float64(c.N*c.D) / (2 - c.Alpha*h)
	}
	if err != nil || math.Abs(r.GradSq/want-1) > 0.1 {
		t.Errorf("error %g, want %g; %v", r.GradSq, want, err)
	}
}

// The interval contains the slope of noisy data, does not contain a wrong one, and leaves out what
// is infinite.
func TestFitSlope(t *testing.T) {
	x := []float64{1, 2, 4, 8}
	ys := [][]float64{{1, 0.51, 0.24, math.Inf(1)}, {1.1, 0.5, 0.26, 0.12}, {0.9, 0.49, 0.25, 0.13}}
	if s := FitSlope(x, ys); !s.Contains(-1) || s.Contains(-0.5) || s.Half > 0.2 {
		t.Errorf("slope %+v", s)
	}
}

// A study that is stopped continues with what it has measured, also after an incomplete line.
func TestMeasureResumes(t *testing.T) {
	calls, limit := 0, 3
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := Study{Name: "toy", Title: "toy", X: "x", Y: "y", Series: []Series{{Name: "line", Predicted: 1}}}
	for _, x := range []float64{1, 2, 4} {
		s.Series[0].Points = append(s.Series[0].Points, Point{X: x,
			Measure: func(ctx context.Context, seed uint64) (float64, error) {
				if calls++; calls > limit {
					cancel()
					return 0, ctx.Err()
				}
				return x * float64(seed), nil
			}})
	}
	path := filepath.Join(t.TempDir(), "m.jsonl")
	if _, err := s.Measure(ctx, path, 2, 1, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Count(text, []byte("\n")) != 3 {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := os.WriteFile(path, text[:len(text)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	calls, limit = 0, 100
	all, err := s.Measure(context.Background(), path, 2, 1, nil)
	if err != nil || calls != 4 || len(all) != 1 || math.Abs(all[0].Slope.Value-1) > 1e-12 {
		t.Fatalf("%d calls, %+v, %v", calls, all, err)
	}
	if line := all[0].Line(s); !strings.Contains(line, "| 1.000 ± 0.000 | 1.000 | yes |") {
		t.Error(line)
	}
	all[0].Predicted = 0
	if line := all[0].Line(s); !strings.Contains(line, "no, by 1 |") {
		t.Error(line)
	}
	if x, y := all[0].Means(); !slices.Equal(x, []float64{1, 2, 4}) || !slices.Equal(y, []float64{1.5, 3, 6}) {
		t.Errorf("means %g at %g", y, x)
	}
	if _, y := all[0].Prediction(); !slices.Equal(y, []float64{1.5, 1.5, 1.5}) {
		t.Errorf("a prediction of slope 0 is %g", y)
	}
	var csv bytes.Buffer
	if err := WriteCSV(&csv, s, all); err != nil || !strings.Contains(csv.String(), "toy,\"line\",4,2,8\n") {
		t.Errorf("%v\n%s", err, csv.String())
	}
}

// Every study has a name of its own, and each of its points can be measured: the first points of
// all series run to a finite value.
func TestStudies(t *testing.T) {
	var names []string
	slopes := 0
	for _, s := range Studies() {
		if slices.Contains(names, s.Name) || s.About == "" {
			t.Errorf("study %q", s.Name)
		}
		names = append(names, s.Name)
		for _, series := range s.Series {
			slopes++
			if len(series.Points) < 4 || series.Why == "" {
				t.Errorf("%s, %s: %d points", s.Name, series.Name, len(series.Points))
			}
		}
	}
	if slopes < 6 {
		t.Errorf("%d slopes", slopes)
	}
	s, _ := Find("iterations")
	if y, err := s.Series[0].Points[0].Measure(context.Background(), 1); err != nil || !(y > 0.001 && y < 0.1) {
		t.Errorf("error %g after 1,024 iterations, %v", y, err)
	}
	if _, ok := Find("none"); ok {
		t.Error("an unknown study is found")
	}
}
