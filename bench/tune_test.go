package bench

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/metric"
)

const twoMethods = `
base: {agents: 4, iterations: 100, eval_points: 2}
methods:
  - {name: dual, set: {algo: fspda-sa, graph: ring}, grid: {alpha: [0.1, 0.3, 1], eta: [auto, 0.01]}}
  - {set: {algo: dsgd}, grid: {alpha: [0.1, 0.2, 0.3], order: [cta, atc]}}
seeds: [11, 12]
report: [1, 2, 3]
bits: 150
`

// ending is a run of a job whose accuracy is value at 100 bits, and better later, beyond the
// budget.
func ending(job Job, value float64) *Outcome {
	row := func(bits uint64, acc float64) train.Row {
		return train.Row{Traffic: metric.Traffic{BitsSharedSeed: bits},
			TestScores: metric.TestScores{TestAccAvg: train.Num(acc)}}
	}
	return &Outcome{Job: job, Status: train.Finished, Rows: []train.Row{row(0, 0.1), row(100, value), row(200, 0.99)}}
}

// The tunings of docs/results.md are read in the folder of the repository, each method with as many
// points as the others.
func TestLanguageTunings(t *testing.T) {
	t.Chdir("..")
	for _, name := range []string{"contiguous", "speakers"} {
		tuned, err := Read("bench/language/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := tuned.Jobs(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) != 8*len(tuned.Runs) {
			t.Errorf("%s: %d runs to choose among, want 8 for each of %d methods", name, len(jobs), len(tuned.Runs))
		}
	}
}

// The figures of agents that leave and join are read in the folder of the repository: each method
// without outages, waiting, and elastic.
func TestChurnFigures(t *testing.T) {
	t.Chdir("..")
	for name, seeds := range map[string]int{"known": 3, "others": 1} {
		f, err := Read("bench/figures/churn/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := f.Jobs(Options{Scale: Scale{Share: 1}})
		if err != nil {
			t.Fatal(err)
		}
		elastic := 0
		for _, j := range jobs {
			if j.Config.Membership == "elastic" {
				elastic++
			}
		}
		if n := len(f.Panels) * seeds; len(jobs) != 3*n || elastic != n {
			t.Errorf("%s: %d runs, %d of them elastic, for %d panels", name, len(jobs), elastic, len(f.Panels))
		}
	}
}

// The point with the best mean over the seeds of the search is chosen, within the budget of bits;
// the reported numbers are those of the fresh seeds alone.
func TestTuningChooses(t *testing.T) {
	s, err := experiment(t, twoMethods)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs(Options{})
	if err != nil || len(jobs) != 24 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	var made []*Outcome
	for i, j := range jobs {
		c := j.Config
		if c.Seed != []uint64{11, 12}[i%2] || c.Agents != 4 || (c.Algo == "dsgd") != (i >= 12) {
			t.Errorf("run %s has seed %d, %d agents", j.Name, c.Seed, c.Agents)
		}
		acc := 0.5
		switch {
		case c.Algo == "dsgd" && c.Alpha == 0.2 && c.Order == "atc":
			acc = 0.6 + 0.1*float64(i%2)
		case c.Algo == "dsgd" && c.Alpha == 0.3 && c.Seed == 12:
			acc = 0.9 // one good seed is not enough
		case c.Algo == "fspda-sa" && c.Alpha == 1 && c.Eta.Auto:
			acc = 0.8
		}
		o := ending(j, acc)
		if c.Algo == "dsgd" && c.Alpha == 0.3 && c.Seed == 11 {
			o.Status = train.Diverged
		}
		made = append(made, o)
	}
	results, err := s.Choose(made)
	if err != nil {
		t.Fatal(err)
	}
	choices := results[0].Choices
	first, second := choices[0], choices[1]
	if first.Method != "dual" || first.Chosen != "alpha 1, eta auto" || strings.Join(first.Edge, " ") != "alpha" ||
		first.Failed != 0 || first.Runs != 12 || math.Abs(float64(first.Search)-0.8) > 1e-12 {
		t.Errorf("%+v", first)
	}
	if second.Method != "dsgd" || second.Chosen != "alpha 0.2, order atc" || len(second.Edge) != 0 ||
		second.Failed != 2 || math.Abs(float64(second.Search)-0.65) > 1e-12 {
		t.Errorf("%+v", second)
	}
	fresh, err := s.Fresh(results, Options{})
	if err != nil || len(fresh) != 6 || fresh[5].Config.Seed != 3 || fresh[5].Config.Alpha != 0.2 ||
		fresh[0].Config.Graph != "ring" {
		t.Fatalf("%d jobs, %v", len(fresh), err)
	}
	s.Finish(results, []*Outcome{ending(fresh[0], 0.7), ending(fresh[1], 0.8), ending(fresh[2], 0.9),
		ending(fresh[3], 0.5), nil, ending(fresh[5], 0.5)})
	if c := choices[0]; math.Abs(float64(c.Mean)-0.8) > 1e-12 || math.Abs(float64(c.Std)-0.1) > 1e-12 || c.Bits != 100 {
		t.Errorf("%+v", c)
	}
	if !math.IsNaN(float64(choices[1].Mean)) {
		t.Errorf("a run without an outcome gives %v", choices[1].Mean)
	}
	var md, csv strings.Builder
	if err := errors.Join(s.WriteMarkdown(&md, results, strings.ToLower), s.WriteCSV(&csv, results)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| dual | `{alpha: [0.1, 0.3, 1.0], eta: [auto, 0.01]}` | alpha 1.0, eta auto " +
		"| alpha |",
		"12 runs: 6 points of its grid, with seeds 11,12", "| 0.8 ± 0.1 | 100 bit |"} {
		if !strings.Contains(strings.ReplaceAll(md.String(), "1.0", "1"), strings.ReplaceAll(want, "1.0", "1")) {
			t.Errorf("the table lacks %q:\n%s", want, md.String())
		}
	}
	if got := strings.Count(csv.String(), "\n"); got != 3 || !strings.Contains(csv.String(), "0.7,0.8,0.9") {
		t.Errorf("csv:\n%s", csv.String())
	}
}

// A method all of whose points fail is said to, and does not run again.
func TestTuningOfFailures(t *testing.T) {
	s, err := experiment(t, "methods: [{set: {algo: dsgd}, grid: {alpha: [1, 2]}}]\nseeds: [5]")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs(Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := ending(jobs[1], 1)
	lost.Status = train.Diverged
	results, err := s.Choose([]*Outcome{{Job: jobs[0]}, lost})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := s.Fresh(results, Options{})
	var md strings.Builder
	s.Finish(results, nil)
	if err != nil || len(fresh) != 0 || s.WriteMarkdown(&md, results, strings.ToLower) != nil ||
		!strings.Contains(md.String(), "every point failed") {
		t.Errorf("%d runs, %v\n%s", len(fresh), err, md.String())
	}
}

// Each budget has a choice of its own. A point that both choose runs again once.
func TestTuningBudgets(t *testing.T) {
	s, err := experiment(t, "methods: [{set: {algo: dsgd}, grid: {alpha: [1, 2]}}, {set: {algo: sgd}, grid: "+
		"{alpha: [1, "+
		"2]}}]\nseeds: [5]\nreport: [1, 2]\nbudgets: [{bits: 150}, {seconds: 9}]\n"+
		"network: {gradient_ms: 5}")
	if err != nil {
		t.Fatal(err)
	}
	// the first point is better within 150 bits, the second at the end
	jobs, err := s.Jobs(Options{})
	if err != nil && !strings.Contains(err.Error(), "virtual time") {
		t.Fatal(err)
	}
	late := ending(jobs[1], 0.2)
	late.Rows[2].TestAccAvg = 1
	results, err := s.Choose([]*Outcome{ending(jobs[0], 0.7), late, ending(jobs[2], 0.8), ending(jobs[3], 0.1)})
	if err != nil || len(results) != 2 || results[0].Choices[0].Chosen != "alpha 1" ||
		results[1].Choices[0].Chosen != "alpha 2" ||
		results[1].Choices[1].Chosen != "alpha 1" || results[0].Choices[0].Search != 0.7 {
		t.Fatalf("%+v", results)
	}
	fresh, err := s.Fresh(results, Options{})
	if err != nil || len(fresh) != 6 {
		t.Fatalf("%d runs, %v, want two seeds of three points", len(fresh), err)
	}
	var made []*Outcome
	for _, j := range fresh {
		made = append(made, ending(j, 0.1*j.Config.Alpha))
	}
	s.Finish(results, made)
	if a, b := results[0].Choices[0], results[1].Choices[1]; a.Mean != 0.1 || a.Bits != 100 || b.Mean != 0.99 ||
		b.Bits != 200 || s.Search.Within(results[0].Budget, made[0]) != 2 {
		t.Errorf("%+v, %+v", a, b)
	}
	var md strings.Builder
	err = s.WriteMarkdown(&md, results, strings.ToLower)
	if err != nil || strings.Count(md.String(), "| dsgd |") != 2 ||
		!strings.Contains(md.String(), "**At the last evaluation within 9 s of virtual time**") {
		t.Errorf("%v\n%s", err, md.String())
	}
}

// The figures that compare tuned methods are valid, and one compares every algorithm.
func TestTuningFigures(t *testing.T) {
	f, err := FindFigure("methods")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Only: []string{"dsgd", "sgd"}, Without: []string{"sgd"}, Adjust: func(c *train.Config) {
		c.Data, c.Iterations = "synthetic", 50
	}}
	var compared []string
	for i := range f.Runs {
		c, err := f.config(&f.Runs[i], "", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		compared = append(compared, c.Algo)
	}
	for _, name := range train.Algorithms() {
		if !slices.Contains(compared, name) {
			t.Errorf("figure methods does not compare %s", name)
		}
	}
	jobs, err := f.Jobs(o)
	if err != nil || len(jobs) != 8 || jobs[0].Config.Iterations != 50 || jobs[0].Config.Data != "synthetic" {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
	if err := f.SetSeeds(Seeds{7, f.Search.Seeds[0]}); err == nil || !strings.Contains(err.Error(), "chosen on") {
		t.Errorf("a seed of the search is reported: %v", err)
	}
}

func TestTuningMistakes(t *testing.T) {
	method := func(grid string) string { return "{set: {algo: dsgd}, grid: " + grid + "}" }
	refuses(t, map[string]string{
		"base: {algo: dsgd}":                      "has no runs",
		"methods: [" + method("{alpha: 3}") + "]": "list of values",
		"methods: [" + method("{alpha: [1, 2]}") + ", {name: b, set: {algo: sgd}, grid: {alpha: " +
			"[1]}}]": "are the points of the grids: give each run as many",
		"methods: [" + method("{alpha: [1, 2]}") + ", {name: b, set: {algo: sgd}, grid: {alpha: [1], batch: [1, " +
			"2]}}]": "has more values in one grid than in another",
		"methods: [" + method("{alpha: [1]}") + ", " + method("{alpha: "+
			"[2]}") + "]": "occurs twice",
		"methods: [" + method("{alpha: [1]}") + "]\nreport: " +
			"[101]": "must not have been chosen on",
		"methods: [" + method("{alpha: [1]}") + "]\nseeds: " +
			"[]": "neither a number of seeds",
		"methods: [" + method("{alpha: [1]}") + "]\nseeds: [4, " +
			"4]": "neither a number of seeds",
		"methods: [" + method("{alpha: [1]}") + "]\nseconds: " +
			"-1": "virtual time",
		"methods: [" + method("{alpha: [1]}") + "]\nbits: 5\nbudgets: [{bits: " +
			"1}]": "are set outside of them too",
		"methods: [" + method("{alpha: [1]}") + "]\nbudgets: [{bits: " +
			"-1}]": "bits",
		"methods: [" + method("{alpha: [1]}") + "]\nbudgets: " +
			"[]": "empty list",
		"methods: [" + method("{alpha: [1]}") + "]\nseconds: " +
			"9": "budget of virtual time, which the runs of dsgd do not have",
		"methods: [" + method("{alpha: [1]}") + ", {set: {algo: fspda-async}, grid: {alpha: [1]}}]\nmetric: " +
			"time_to(0.9)": "the runs of dsgd have no virtual time",
		"methods: [" + method("{alpha: [1], seed: [2]}") +
			"]": "key seed in base",
		"base: {seed: 3}\nmethods: [" + method("{alpha: [1]}") +
			"]": "key seed in base",
		"methods: [" + method("{alpha: [1, 2, 1]}") +
			"]": "has 1 twice",
		"methods: [" + method("{alpha: [1]}") + "]\nmetric: " +
			"accuracy": "metric",
		"methods: [" + method("{alpha: [1]}") + "]\nbudget: " +
			"3": "the keys are",
		"methods: [{set: {algo: dsgdd}, grid: {alpha: " +
			"[1]}}]": "did you mean dsgd",
	})
}

// A comparison of tuned methods may draw points at random and halve them: the better half of the
// points of each run goes on, and a point that was given up is not chosen.
func TestTuningHalves(t *testing.T) {
	e, err := experiment(t, "base: {data_train: 300, data_test: 50, hidden: [4], agents: 4, batch: 8, iterations: 20, "+
		"eval_points: 4, density: 1}\nruns:\n- {set: {algo: dsgd}, random: {alpha: 'log(0.000001, 0.4)'}}\n"+
		"- {set: {algo: fspda-sa}, random: {alpha: 'log(0.000001, 0.4)'}}\n"+
		"search: {samples: 4, seeds: [9], metric: train_loss_avg, halving: {at: [0.5]}}\nseeds: [1]\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := e.Jobs(Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Campaign{Folder: filepath.Join(t.TempDir(), "tuning"), Jobs: jobs, Open: (&lab{}).open}
	outcomes, err := e.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.Runs {
		given := 0
		for _, o := range ofRun(outcomes, i) {
			if o.Dropped > 0 {
				given++
			}
		}
		if given != 2 {
			t.Errorf("%s gave up %d of 4 points, want 2", e.Runs[i].Name, given)
		}
	}
	results, err := e.Choose(outcomes)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := e.Fresh(results, Options{})
	if err != nil || len(fresh) != 2 || !strings.HasPrefix(fresh[0].Name, "report-dsgd-alpha_") {
		t.Fatalf("%d runs, %v", len(fresh), err)
	}
	for _, o := range ofRun(outcomes, 0) { // the best point, were it given up
		if slices.Equal(o.Job.point, fresh[0].point) {
			o.Dropped = 0.5
		}
	}
	again, err := e.Choose(outcomes)
	if err != nil || again[0].Choices[0].Chosen == results[0].Choices[0].Chosen {
		t.Errorf("a point that was given up is chosen: %+v, %v", again[0].Choices[0], err)
	}
}
