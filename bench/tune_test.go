package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/evaluate"
)

func tuning(t *testing.T, text string) (*Tuning, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "methods.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadTuning(path)
}

const twoMethods = `
base: {agents: 4, iterations: 100, eval_points: 2}
methods:
  - {name: dual, set: {algo: fspda-sa, graph: ring}, grid: {alpha: [0.1, 0.3, 1], eta: [auto, 0.01]}}
  - {set: {algo: dsgd}, grid: {alpha: [0.1, 0.2, 0.3], order: [cta, atc]}}
seeds: [11, 12]
report: [1, 2, 3]
bits: 150
`

// ending is a run whose accuracy is value at 100 bits, and better later, beyond the budget.
func ending(value float64) *Outcome {
	row := func(bits uint64, acc float64) train.Row {
		return train.Row{Traffic: evaluate.Traffic{BitsSharedSeed: bits},
			TestScores: evaluate.TestScores{TestAccAvg: train.Num(acc)}}
	}
	return &Outcome{Status: train.Finished, Rows: []train.Row{row(0, 0.1), row(100, value), row(200, 0.99)}}
}

// The point with the best mean over the seeds of the search is chosen, within the budget of bits; the
// reported numbers are those of the fresh seeds alone.
func TestTuningChooses(t *testing.T) {
	s, err := tuning(t, twoMethods)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Search()
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
		o := ending(acc)
		if c.Algo == "dsgd" && c.Alpha == 0.3 && c.Seed == 11 {
			o.Status = train.Diverged
		}
		made = append(made, o)
	}
	choices := s.Choose(made)
	first, second := choices[0], choices[1]
	if first.Method != "dual" || first.Chosen != "alpha 1, eta auto" || strings.Join(first.Edge, " ") != "alpha" ||
		first.Failed != 0 || first.Runs != 12 || math.Abs(first.Search-0.8) > 1e-12 {
		t.Errorf("%+v", first)
	}
	if second.Method != "dsgd" || second.Chosen != "alpha 0.2, order atc" || len(second.Edge) != 0 ||
		second.Failed != 2 || math.Abs(second.Search-0.65) > 1e-12 {
		t.Errorf("%+v", second)
	}
	fresh, err := s.Fresh(choices)
	if err != nil || len(fresh) != 6 || fresh[5].Config.Seed != 3 || fresh[5].Config.Alpha != 0.2 ||
		fresh[0].Config.Graph != "ring" {
		t.Fatalf("%d jobs, %v", len(fresh), err)
	}
	s.Finish(choices, []*Outcome{ending(0.7), ending(0.8), ending(0.9), ending(0.5), nil, ending(0.5)})
	if c := choices[0]; math.Abs(c.Mean-0.8) > 1e-12 || math.Abs(c.Std-0.1) > 1e-12 || c.Bits != 100 {
		t.Errorf("%+v", c)
	}
	if !math.IsNaN(choices[1].Mean) {
		t.Errorf("a run without an outcome gives %v", choices[1].Mean)
	}
	var md, csv strings.Builder
	if err := errors.Join(s.WriteMarkdown(&md, choices), s.WriteCSV(&csv, choices)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| dual | `{alpha: [0.1, 0.3, 1.0], eta: [auto, 0.01]}` | alpha 1.0, eta auto | alpha |",
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
	s, err := tuning(t, "methods: [{set: {algo: dsgd}, grid: {alpha: [1, 2]}}]\nseeds: [5]")
	if err != nil {
		t.Fatal(err)
	}
	choices := s.Choose([]*Outcome{nil, {Status: train.Diverged, Rows: ending(1).Rows}})
	fresh, err := s.Fresh(choices)
	var md strings.Builder
	if s.Finish(choices, nil); err != nil || len(fresh) != 0 || s.WriteMarkdown(&md, choices) != nil ||
		!strings.Contains(md.String(), "every point failed") {
		t.Errorf("%d runs, %v\n%s", len(fresh), err, md.String())
	}
}

func TestTuningMistakes(t *testing.T) {
	method := func(grid string) string { return "{set: {algo: dsgd}, grid: " + grid + "}" }
	for text, want := range map[string]string{
		"base: {algo: dsgd}":                      "expected the methods",
		"methods: [" + method("{alpha: 3}") + "]": "list of values",
		"methods: [" + method("{alpha: [1, 2]}") + ", {name: b, set: {algo: sgd}, grid: {alpha: " +
			"[1]}}]": "are the points of the grids: give each method as many",
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
		"methods: [" + method("{alpha: [1]}") + "]\nmetric: " +
			"accuracy": "metric",
		"methods: [" + method("{alpha: [1]}") + "]\nbudget: " +
			"3": "the keys are",
		"methods: [{set: {algo: dsgdd}, grid: {alpha: " +
			"[1]}}]": "did you mean dsgd",
	} {
		s, err := tuning(t, text)
		if err == nil {
			_, err = s.Search()
		}
		var e *train.ConfigError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
