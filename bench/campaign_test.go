package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/train"
)

// tiny is figure 1 in a second: few iterations of a small network on little data.
func tiny(t *testing.T, only ...string) []Job {
	t.Helper()
	f, err := FindFigure("1")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := f.Jobs(Options{Variant: "released", Scale: Scale{Share: 1e-4, Retune: true}, Points: 5,
		Only: only, Adjust: func(c *train.Config) {
			synthetic(300, 50)(c)
			c.Hidden, c.Batch = train.Widths{4}, 8
		}})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// lines are the metrics of a run without its times.
func lines(t *testing.T, folder string) []string {
	t.Helper()
	rows, err := train.ReadMetrics(filepath.Join(folder, "metrics.jsonl"), 1e9)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		r.WallS = 0
		var b strings.Builder
		for _, v := range r.Values() {
			b.WriteString(short(v) + " ")
			b.WriteString(plain(v) + ",")
		}
		out = append(out, b.String())
	}
	return out
}

// All algorithms of figure 1 run, alone or two at a time, to the same numbers, and a second call
// keeps them.
func TestCampaign(t *testing.T) {
	l := &lab{}
	one := &Campaign{Folder: filepath.Join(t.TempDir(), "one"), Jobs: tiny(t), Parallel: 1, Threads: 2, Open: l.open}
	two := &Campaign{Folder: filepath.Join(t.TempDir(), "two"), Jobs: tiny(t), Parallel: 2, Threads: 2, Open: l.open}
	first, err := one.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(first) != 8 {
		t.Fatalf("%d outcomes, want 8", len(first))
	}
	for i, o := range first {
		if o.Status != train.Finished || len(o.Rows) < 3 || o.Job.Name != one.Jobs[i].Name {
			t.Errorf("%s ended as %+v", one.Jobs[i].Name, o)
		}
		if !slices.Equal(lines(t, o.Folder), lines(t, filepath.Join(two.Folder, o.Job.Name))) {
			t.Errorf("%s differs when two run at a time", o.Job.Name)
		}
		if o.Rows[0].TrainLossWorst != first[0].Rows[0].TrainLossWorst {
			t.Errorf("%s starts from another model or other data", o.Job.Name)
		}
	}
	kept := 0
	one.OnEvent = func(e Event) {
		if e.Kind == AlreadyDone {
			kept++
		} else {
			t.Errorf("event %+v for a run that was done", e)
		}
	}
	if again, err := one.Run(context.Background()); err != nil || kept != 8 ||
		len(again[3].Rows) != len(first[3].Rows) {
		t.Errorf("the second call: %v, kept %d", err, kept)
	}
}

// A campaign that is stopped goes on to the numbers of one that is not.
func TestCampaignResumes(t *testing.T) {
	l := &lab{}
	whole := &Campaign{Folder: filepath.Join(t.TempDir(), "whole"), Jobs: tiny(t, "sa", "storm", "led"), Parallel: 1,
		Open: l.open}
	if _, err := whole.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	broken := &Campaign{Folder: filepath.Join(t.TempDir(), "broken"), Jobs: whole.Jobs, Parallel: 2, Open: l.open}
	stops, resumed := 0, false
	for round := 0; ; round++ {
		ctx, cancel := context.WithCancel(context.Background())
		began := map[int]bool{}
		broken.OnEvent = func(e Event) {
			if e.Kind == Started && e.Iteration > 0 {
				resumed = true
			}
			began[e.Job] = true
			if e.Kind == Stepped && e.Iteration > 20*(round+1) {
				cancel()
			}
		}
		outcomes, err := broken.Run(ctx)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if stops++; stops > 30 {
			t.Fatalf("no end after %d stops: %v", stops, outcomes)
		}
	}
	if stops < 2 || !resumed {
		t.Errorf("stopped %d times, resumed %v: nothing was tested", stops, resumed)
	}
	for _, j := range whole.Jobs {
		if !slices.Equal(lines(t, filepath.Join(whole.Folder, j.Name)),
			lines(t, filepath.Join(broken.Folder, j.Name))) {
			t.Errorf("%s differs after %d stops", j.Name, stops)
		}
	}
}

// What is wrong with any run is said before the first one begins.
func TestCampaignRefuses(t *testing.T) {
	l := &lab{}
	c := &Campaign{Folder: filepath.Join(t.TempDir(), "fig"), Jobs: tiny(t, "sa", "dsgd"), Open: l.open}
	if _, err := c.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.Jobs[1].Config.Alpha *= 2
	c.Jobs = append(c.Jobs, Job{Name: "new", Config: c.Jobs[0].Config})
	var folder *train.FolderError
	if _, err := c.Run(context.Background()); !errors.As(err, &folder) || !strings.Contains(err.Error(), "alpha") {
		t.Errorf("another configuration in the same folder: %v", err)
	}
	c.Jobs[1].Config.Gamma, c.Jobs[2].Config.Gamma = 0.5, 7
	var config *train.ConfigError
	if _, err := c.Run(context.Background()); !errors.As(err, &config) || !strings.Contains(err.Error(), "run new") {
		t.Errorf("an unstable step: %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Folder, "new")); err == nil {
		t.Error("a run began although another was refused")
	}
}

// A run that diverges is an outcome; the others go on.
func TestCampaignDiverges(t *testing.T) {
	l := &lab{}
	c := &Campaign{Folder: filepath.Join(t.TempDir(), "fig"), Jobs: tiny(t, "dsgd", "sa"), Open: l.open}
	at := slices.IndexFunc(c.Jobs, func(j Job) bool { return j.Name == "sa" })
	c.Jobs[at].Config.Alpha, c.Jobs[at].Config.Activation = 1e9, "relu"
	outcomes, err := c.Run(context.Background())
	if err != nil || outcomes[at].Status != train.Diverged || outcomes[1-at].Status != train.Finished {
		t.Errorf("%v, %+v", err, outcomes)
	}
	var b strings.Builder
	table := &Table{Accounting: "shared-seed", Levels: []float64{0.01}, Outcomes: outcomes}
	if err := table.WriteMarkdown(&b); err != nil || !strings.Contains(b.String(), "diverged at") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A sweep makes equal runs once, and refuses a key that none of its runs uses.
func TestSweepOfEqualRuns(t *testing.T) {
	const base = "base: {data_train: 300, data_test: 50, hidden: 4, batch: 8, iterations: 4, eval_points: 2, agents: 3"
	s, err := experiment(t, base+"}\ngrid: {theta: [0.3, 0.4], algo: [dsgd, fspda-sa]}\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	c := &Campaign{Folder: filepath.Join(t.TempDir(), "sweep"), Jobs: jobs, Open: (&lab{}).open, Once: true}
	c.OnEvent = func(e Event) {
		if e.Kind == LeftOut {
			left = append(left, jobs[e.Job].Name+" as "+jobs[e.Same].Name)
		}
	}
	outcomes, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"004-theta=0.4-algo=fspda-sa as 002-theta=0.3-algo=fspda-sa"}
	if ranked, err := s.Rank(Budget{}, outcomes); err != nil || len(ranked) != 3 || !slices.Equal(left, want) {
		t.Errorf("%d runs ranked, left out %q", len(ranked), left)
	}
	for _, text := range []string{base + ", theta: 0.3}\ngrid: {gamma: [0.3, 0.4]}\n",
		base + "}\ngrid: {theta: [0.3], gamma: [0.3, 0.4]}\n"} {
		if s, err = experiment(t, text); err != nil {
			t.Fatal(err)
		}
		if c.Jobs, err = s.Jobs(Options{}); err != nil {
			t.Fatal(err)
		}
		c.Folder = filepath.Join(t.TempDir(), "other")
		_, err = c.Run(context.Background())
		if err == nil ||
			err.Error() != "config: theta 0.3: has no effect on any of the 2 runs: it needs algo dsgd, beer, "+
				"choco, ticopd or docom; leave it out, or choose what uses it" {
			t.Errorf("%v", err)
		}
	}
}

// The forecast is measured, kept, and proportional to the iterations.
func TestForecast(t *testing.T) {
	jobs := tiny(t, "sa")
	jobs[0].Config.Sampling = "full"
	k := &Calibration{Path: filepath.Join(t.TempDir(), "deep", "calibration.json"), Open: (&lab{}).open, Threads: 1}
	short, err := k.Forecast(context.Background(), jobs)
	if err != nil || short <= 0 {
		t.Fatal(short, err)
	}
	k.Open = nil // from here on it must know
	jobs[0].Config.Iterations *= 1000
	if long, err := k.Forecast(context.Background(), jobs); err != nil || long < 10*short {
		t.Errorf("%v for a thousand times the iterations of %v, %v", long, short, err)
	}
}
