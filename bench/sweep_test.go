package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"fspda/train"
	"fspda/train/evaluate"
)

func sweep(t *testing.T, text string) (*Sweep, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grid.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadSweep(path)
}

// The defaults of a language model are those of fspda train in a sweep, a tuning and a figure.
func TestLanguageDefaults(t *testing.T) {
	check := func(what string, c train.Config, err error) {
		t.Helper()
		if err != nil || c.Model != "gpt-nano" || c.Optimizer != "adamw" || c.Beta2 != 0.99 || c.Hidden != nil ||
			c.Partition != "contiguous" || c.Batch != 12 {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	s, err := sweep(t, "base: {data: synthetic-text}\ngrid: {alpha: [0.01]}\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs()
	check("sweep", jobs[0].Config, err)
	tuned, err := tuning(t, "methods: [{set: {algo: dsgd, data: synthetic-text}, grid: {alpha: [0.01]}}]\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err = tuned.Search()
	check("tuning", jobs[0].Config, err)
	if jobs[0].Config.Alpha != 0.01 {
		t.Errorf("alpha %v", jobs[0].Config.Alpha)
	}
	f := &Figure{Common: yaml.MapSlice{{Key: "model", Value: "gpt-nano"}}}
	c, err := f.config(FigureRun{Name: "one", Config: yaml.MapSlice{{Key: "algo", Value: "dsgd"}}}, "")
	check("figure", c, err)
	if c.Algo != "dsgd" || c.Data != "synthetic-text" {
		t.Errorf("%s on %s", c.Algo, c.Data)
	}
}

func TestSweepJobs(t *testing.T) {
	s, err := sweep(t, "base: {algo: fspda-sa, graph: ring}\ngrid: {density: [0.1, 1], edges: [one-edge, "+
		"'bernoulli(0.5)']}\nrandom: {alpha: 'log(0.01, 1)', eta: [auto, 0.001], batch: 'int(4, 6)'}\nsamples: 3\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs()
	if err != nil || len(jobs) != 12 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	names := map[string]bool{}
	for i, j := range jobs {
		c := j.Config
		names[j.Name] = true
		if c.Graph != "ring" || c.Alpha < 0.01 || c.Alpha > 1 || c.Batch < 4 || c.Batch > 6 {
			t.Errorf("%s: %+v", j.Name, c)
		}
		// the draws belong to samples, not to the grid
		if same := jobs[i%3].Config; c.Alpha != same.Alpha || c.Eta != same.Eta {
			t.Errorf("%s draws alpha %v, eta %v; sample %d of the first point %v, %v", j.Name, c.Alpha, c.Eta, i%3,
				same.Alpha, same.Eta)
		}
		if strings.ContainsAny(j.Name, "()/ '") {
			t.Errorf("the folder %q is hard to name", j.Name)
		}
	}
	if len(names) != 12 || jobs[11].Config.Edges != "bernoulli(0.5)" || jobs[0].Config.Alpha == jobs[1].Config.Alpha {
		t.Errorf("names %v", names)
	}
	more, err := sweep(t, "random: {density: 'uniform(0.1,0.9)', alpha: 'log(0.01, 1)'}\nsamples: 5\n")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := more.Jobs(); err != nil || other[2].Config.Alpha != jobs[2].Config.Alpha {
		t.Errorf("another key changed the draws of alpha: %v", err)
	}
}

func TestSweepMistakes(t *testing.T) {
	for text, word := range map[string]string{
		"base: {algo: dsgd}":                                   "nothing to search",
		"grid: {alpha: 3}":                                     "list of values",
		"grid: {alhpa: [1]}":                                   `did you mean "alpha"`,
		"grid: {gamma: [1]}\nmetric: test_acc_aver":            "did you mean test_acc_avg",
		"random: {alpha: 'log(0,1)'}\nsamples: 1":              "log(a,b)",
		"random: {alpha: 'log(0.1,1)'}\nsamples: 1000000000":   "expected at most 10000",
		"random: {alpha: 'log(0.1,1)'}":                        "samples",
		"grid: {alpha: [-1]}":                                  "step size above 0",
		"grid: {alpha: [1]}\nbudget: 3":                        "the keys are",
		"grid: {alpha: [1]}\nbest: maximum":                    "min, max",
		"grid: {alpha: [1]}\naccounting: packet":               "packed",
		"grid: {alpha: [1]}\nbits: -1":                         "budget",
		"base: {bach: 3}\ngrid: {alpha: [1]}":                  `did you mean "batch"`,
		"random: {batch: 'int(1.5,3)'}\nsamples: 2":            "int(a,b)",
		"random: {batch: 'int(1,1e30)'}\nsamples: 2":           "int(a,b)",
		"random: {alpha: 'uniform(0.1,0.2)*9'}\nsamples: 2":    "uniform(a,b)",
		"random: {alpha: 'uniform(0.1,inf)'}\nsamples: 2":      "both finite",
		"grid: {alpha: [0.1, 0.2, 0.1]}":                       "has 0.1 twice",
		"grid: {alpha: []}":                                    "list of values",
		"random: {algo: 'uniform(1,2)'}\nsamples: 2\n":         "algo",
		"grid: {batch: [1.5]}":                                 "whole number",
		"grids: {alpha: [1]}":                                  `key "grids" does not exist: did you mean "grid"?`,
		"grid:\n  - alpha: [1]":                                "line 2: sequence was used where mapping",
		"seed: 1\nbase: algo: dsgd":                            "not allowed in this context: expected base:",
		"base:\n\talgo: dsgd":                                  "begins with a tab: YAML is indented with spaces",
		"halving: true":                                        "expected halving: {at: [0.25, 0.5], keep: 0.5}",
		"halving:\n  factor: 1":                                `"factor" does not exist: expected halving:`,
		"seeds: [-1]":                                          "the seed \"-1\" is not a whole number of at least 0",
		"seeds: [1, 1]":                                        "list of different seeds",
		"grid: {alpha: [1]}\ngrid: {eta: [1]}":                 "already defined",
		"# nothing":                                            "is empty: the keys are base",
		"grid: {alpha: [1]}\nmetric: 3":                        `metric "3": there are bits_to`,
		"grid: {alpha: [1]}\nsamples: 3":                       "samples 3: has no effect",
		"grid: {alpha: [1]}\nseed: 3":                          "write seeds: [1, 2, 3]",
		"grid: {alpha: [1]}\nbase: {alpha: 2}":                 "base has this key too",
		"grid: {alpha: [1]}\nrandom: {alpha: [2]}\nsamples: 1": "grid has this key too",
		"grid: {compress: ['lattice(1,2)', 'randk', 3]}":       "",
	} {
		s, err := sweep(t, text)
		if err == nil {
			_, err = s.Jobs()
		}
		if word == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if _, ok := errors.AsType[*train.ConfigError](err); !ok || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want an error that speaks of %q", text, err, word)
		}
	}
}

// Runs are judged at a budget, by more or by less, and those without a number come last.
func TestRank(t *testing.T) {
	run := func(name string, status train.Status, rows ...train.Row) *Outcome {
		return &Outcome{Job: Job{Name: name}, Status: status, Rows: rows}
	}
	row := func(bits uint64, acc, loss float64) train.Row {
		return train.Row{Traffic: evaluate.Traffic{BitsSharedSeed: bits, BitsReference: 10 * bits},
			TestScores: evaluate.TestScores{TestAccAvg: train.Num(
				acc)}, TrainScores: evaluate.TrainScores{TrainLossWorst: train.Num(loss)}}
	}
	all := []*Outcome{
		run("slow", train.Finished, row(0, 0.1, 9), row(100, 0.2, 3), row(200, 0.9, 1)),
		run("fast", train.Finished, row(0, 0.1, 9), row(100, 0.5, 2), row(200, 0.6, 1.5)),
		run("gone", train.Diverged, row(0, 0.99, 0)),
	}
	order := func(s *Sweep) string {
		var names []string
		ranked, err := s.Rank(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ranked {
			names = append(names, r.Job.Name)
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct {
		s    Sweep
		want string
	}{
		{Sweep{Metric: "test_acc_avg", Best: "max"}, "slow fast gone"},
		{Sweep{Metric: "test_acc_avg", Best: "max", Bits: 150}, "fast slow gone"},
		{Sweep{Metric: "train_loss_worst", Best: "min", Bits: 1500, Accounting: "reference"}, "fast slow gone"},
		{Sweep{Metric: "train_loss_worst", Best: "min"}, "slow fast gone"},
	} {
		if got := order(&c.s); got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
	r, err := (&Sweep{Metric: "test_acc_avg", Best: "max", Bits: 150}).Rank(all)
	if err != nil || r[0].Bits != 100 || !math.IsNaN(r[2].Value) {
		t.Errorf("%+v, %v", r, err)
	}
}

// A sweep of which no setting has a value ranks none and names no best.
func TestRankWithoutValues(t *testing.T) {
	rows := []train.Row{{}, {Position: evaluate.Position{Iteration: 9}}}
	all := []*Outcome{{Job: Job{Name: "a"}, Status: train.Finished, Rows: rows, Folder: "runs/a"}}
	for metric, want := range map[string]string{
		"bits_to(0.99)": "no setting reached it", "test_acc_avg": "best: fspda train -c runs/a/config.yaml",
	} {
		s := &Sweep{Metric: metric, Best: "min", Accounting: "shared-seed"}
		ranked, err := s.Rank(all)
		if err != nil || s.Verdict(ranked) != want {
			t.Errorf("%s: %q, %v", metric, s.Verdict(ranked), err)
		}
		if line := s.Lines(ranked)[0]; (line.Rank == nil) != (metric == "bits_to(0.99)") {
			t.Errorf("%s: rank %v", metric, line.Rank)
		}
	}
}

// Before anything is trained, a metric is refused that a run cannot have, and a panel that no run
// of its group fills.
func TestCheckColumns(t *testing.T) {
	plans := []planned{{job: Job{Name: "a", Group: "g"}, lacks: map[string]string{"perplexity": "data that is text"}},
		{job: Job{Name: "b", Group: "h"}}}
	for _, c := range []struct {
		campaign Campaign
		want     string
	}{
		{Campaign{Metric: "perplexity"}, "metric perplexity: run a has no numbers of it: they need data that is text"},
		{Campaign{Metric: "bits_to(0.9)"}, ""},
		{Campaign{Panels: []Panel{{Metric: "perplexity", X: "bits"}}}, ""},
		{Campaign{Panels: []Panel{{Metric: "perplexity", X: "bits", Group: "g"}}}, "panels: perplexity: no run"},
	} {
		err := c.campaign.checkColumns(plans)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.campaign, err, c.want)
		}
	}
}

// Bits to an accuracy are interpolated between the evaluations around it, in the accounting that was
// asked for.
func TestTable(t *testing.T) {
	o := &Outcome{Job: Job{Title: "a,b", Config: train.Default()}, Status: train.Finished, Rows: []train.Row{
		{TestScores: evaluate.TestScores{TestAccAvg: 0.1,
			TestAccMin: 0.1}}, {TestScores: evaluate.TestScores{TestAccAvg: 0.6, TestAccMin: 0.2},
			Traffic: evaluate.Traffic{BitsSharedSeed: 1000, BitsReference: 3000}},
		{TestScores: evaluate.TestScores{TestAccAvg: 0.7, TestAccMin: 0.55},
			Traffic: evaluate.Traffic{BitsSharedSeed: 2000, BitsReference: 6000}}}}
	table := &Table{Accounting: "reference", Levels: []float64{0.5, 0.9}, Outcomes: []*Outcome{o}}
	var md, csv strings.Builder
	if err := errors.Join(table.WriteMarkdown(&md), table.WriteCSV(&csv)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(md.String(), "| a,b | 2.4 kbit / 5.57 kbit | – / – |") {
		t.Error(md.String())
	}
	if !strings.Contains(md.String(), "the first that reached it, which are 3 kbit apart.") {
		t.Error(md.String())
	}
	if line := strings.Split(csv.String(), "\n")[1]; !strings.HasPrefix(line, `"a,b",fspda-sa,finished,`) ||
		!strings.Contains(line, ",2400,,5571,,") {
		t.Error(csv.String())
	}
}
