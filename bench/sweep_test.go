package bench

import (
	"errors"
	"math"
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/metric"
)

// The defaults of a language model are those of fspda train in a sweep, a tuning and a figure.
func TestLanguageDefaults(t *testing.T) {
	check := func(what string, c train.Config, err error) {
		t.Helper()
		if err != nil || c.Model != "gpt-nano" || c.Optimizer != "adamw" || c.Beta2 != 0.99 || c.Hidden != nil ||
			c.Partition != "contiguous" || c.Batch != 12 {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	s, err := experiment(t, "base: {data: synthetic-text}\ngrid: {alpha: [0.01]}\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs(Options{})
	check("sweep", jobs[0].Config, err)
	tuned, err := experiment(t, "methods: [{set: {algo: dsgd, data: synthetic-text}, grid: {alpha: [0.01]}}]\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err = tuned.Jobs(Options{})
	check("tuning", jobs[0].Config, err)
	if jobs[0].Config.Alpha != 0.01 {
		t.Errorf("alpha %v", jobs[0].Config.Alpha)
	}
	f, err := experiment(t, "base: {model: gpt-nano}\nruns: [{set: {algo: dsgd}}]\n")
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.config(&f.Runs[0], "", nil, nil)
	check("figure", c, err)
	if c.Algo != "dsgd" || c.Data != "synthetic-text" {
		t.Errorf("%s on %s", c.Algo, c.Data)
	}
}

func TestSweepJobs(t *testing.T) {
	s, err := experiment(t, "base: {algo: fspda-sa, graph: ring}\ngrid: {density: [0.1, 1], edges: [one-edge, "+
		"'bernoulli(0.5)']}\nrandom: {alpha: 'log(0.01, 1)', eta: [auto, 0.001], batch: 'int(4, 6)'}\nsamples: 3\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs(Options{})
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
	more, err := experiment(t, "random: {density: 'uniform(0.1,0.9)', alpha: 'log(0.01, 1)'}\nsamples: 5\n")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := more.Jobs(Options{}); err != nil || other[2].Config.Alpha != jobs[2].Config.Alpha {
		t.Errorf("another key changed the draws of alpha: %v", err)
	}
}

func TestSweepMistakes(t *testing.T) {
	refuses(t, map[string]string{
		"base: {algo: dsgd}": "there is nothing to run",
		"metric: test_acc_avg": "are keys of search, as " +
			"in search: {metric",
		"runs: [{set: {algo: sgd}}]\nbits: 1": "are keys of search",
		"grid: {alpha: [1]}\nsearch: {seeds: 2}": "are keys of old files, " +
			"which have no search",
		"base: {algo: sgd}\ncommon: {algo: sgd}": "is in an old file what " +
			"base is now",
		"runs: [{set: {algo: sgd}, config: {algo: sgd}}]": "is in an old file what " +
			"set is now",
		"runs: [{set: {algo: sgd}}]\nfiles: [a.yaml]": "the file has runs too",
		"files: [a.yaml]\nseeds: 3":                   "have no effect on them",
		"runs: [{printed: 3, grid: {alpha: [1, 2]}}]": "printed: has no effect on a search",
		"folder: x\nruns: [{set: {algo: sgd}}]": "set the folder of the " +
			"runs with --out",
		"search: {}\npanels: [{metric: consensus}]\nruns: [{set: {algo: sgd}}]": "panels: have no effect " +
			"on a search",
		"runs: [{grid: {alpha: [1, 2]}}]\nsearch: {budgets: [{bits: 1}, {bits: 2}]}": "a ranking and halving " +
			"have one budget",
		"runs: [{grid: {alpha: [1, 2]}}]\nsearch: {metrics: a}": "key \"metrics\" does not " +
			"exist: expected search:",
		"grid: {alpha: 3}":                                   "list of values",
		"grid: {alhpa: [1]}":                                 `did you mean "alpha"`,
		"grid: {gamma: [1]}\nmetric: test_acc_aver":          "did you mean test_acc_avg",
		"random: {alpha: 'log(0,1)'}\nsamples: 1":            "log(a,b)",
		"random: {alpha: 'log(0.1,1)'}\nsamples: 1000000000": "expected at most 10000",
		"random: {alpha: 'log(0.1,1)'}":                      "samples",
		"grid: {alpha: [-1]}":                                "step size above 0",
		"grid: {alpha: [1]}\nbudget: 3":                      "the keys are",
		"grid: {alpha: [1]}\nbest: maximum":                  "min, max",
		"grid: {alpha: [1]}\naccounting: packet":             "packed",
		"grid: {alpha: [1]}\nbits: -1":                       "budget",
		"base: {bach: 3}\ngrid: {alpha: [1]}":                `did you mean "batch"`,
		"random: {batch: 'int(1.5,3)'}\nsamples: 2":          "int(a,b)",
		"random: {batch: 'int(1,1e30)'}\nsamples: 2":         "int(a,b)",
		"random: {alpha: 'uniform(0.1,0.2)*9'}\nsamples: 2":  "uniform(a,b)",
		"random: {alpha: 'uniform(0.1,inf)'}\nsamples: 2":    "both finite",
		"grid: {alpha: [0.1, 0.2, 0.1]}":                     "has 0.1 twice",
		"grid: {alpha: []}":                                  "list of values",
		"random: {algo: 'uniform(1,2)'}\nsamples: 2\n":       "algo",
		"grid: {batch: [1.5]}":                               "whole number",
		"bases: {alpha: " +
			"[1]}": `key "bases" does not exist: did you mean "base"?`,
		"grid:\n  - alpha: [1]": "line 2: sequence was " +
			"used where mapping",
		"seed: 1\nbase: algo: dsgd": "not allowed in this " +
			"context: expected base:",
		"base:\n\talgo: dsgd": "begins with a tab: YAML " +
			"is indented with spaces",
		"halving: true": "expected halving: {at: " +
			"[0.25, 0.5], keep: 0.5}",
		"halving:\n  factor: " +
			"1": `"factor" does not exist: expected halving:`,
		"seeds: [-1]": "the seed \"-1\" is not a " +
			"whole number of at least 0",
		"seeds: [1, 1]":                                        "list of different seeds",
		"grid: {alpha: [1]}\ngrid: {eta: [1]}":                 "already defined",
		"# nothing":                                            "is empty: the keys are title",
		"grid: {alpha: [1]}\nmetric: 3":                        `metric "3": there are bits_to`,
		"grid: {alpha: [1]}\nsamples: 3":                       "samples 3: has no effect",
		"grid: {alpha: [1]}\nseed: 3":                          "write seeds: [1, 2, 3]",
		"grid: {alpha: [1]}\nbase: {alpha: 2}":                 "base has this key too",
		"grid: {alpha: [1]}\nrandom: {alpha: [2]}\nsamples: 1": "grid has this key too",
		"grid: {compress: ['lattice(1,2)', 'randk', 3]}":       "",
	})
}

// Runs are judged at a budget, by more or by less, and those without a number come last.
func TestRank(t *testing.T) {
	run := func(name string, status train.Status, rows ...train.Row) *Outcome {
		return &Outcome{Job: Job{Name: name}, Status: status, Rows: rows}
	}
	row := func(bits uint64, acc, loss float64) train.Row {
		return train.Row{Traffic: metric.Traffic{BitsSharedSeed: bits, BitsReference: 10 * bits},
			TestScores: metric.TestScores{TestAccAvg: train.Num(
				acc)}, TrainScores: metric.TrainScores{TrainLossWorst: train.Num(loss)}}
	}
	all := []*Outcome{
		run("slow", train.Finished, row(0, 0.1, 9), row(100, 0.2, 3), row(200, 0.9, 1)),
		run("fast", train.Finished, row(0, 0.1, 9), row(100, 0.5, 2), row(200, 0.6, 1.5)),
		run("gone", train.Diverged, row(0, 0.99, 0)),
	}
	for keys, want := range map[string]string{
		"": "slow fast gone", "bits: 150": "fast slow gone", "metric: train_loss_worst": "slow fast gone",
		"{metric: train_loss_worst, bits: 1500, accounting: reference}": "fast slow gone",
	} {
		e, err := experiment(t, "{grid: {alpha: [1]}, "+strings.Trim(keys, "{}")+"}")
		if err != nil {
			t.Fatal(err)
		}
		ranked, err := e.Rank(e.Search.Budgets[0], all)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range ranked {
			names = append(names, r.Job.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%+v: %s, want %s", keys, got, want)
		}
		if keys == "bits: 150" && (ranked[0].Bits != 100 || !math.IsNaN(ranked[2].Value)) {
			t.Errorf("%+v", ranked)
		}
	}
}

// A ranking of which no setting has a value ranks none and names no best.
func TestRankWithoutValues(t *testing.T) {
	rows := []train.Row{{}, {Position: metric.Position{Iteration: 9}}}
	all := []*Outcome{{Job: Job{Name: "a"}, Status: train.Finished, Rows: rows, Folder: "runs/a"}}
	for metric, want := range map[string]string{
		"bits_to(0.99)": "no setting reached it", "test_acc_avg": "best: fspda train -c runs/a/config.yaml",
	} {
		e, err := experiment(t, "{grid: {alpha: [1]}, metric: "+metric+"}")
		if err != nil {
			t.Fatal(err)
		}
		ranked, err := e.Rank(Budget{}, all)
		if err != nil || e.Search.Conclusion(ranked) != want {
			t.Errorf("%s: %q, %v", metric, e.Search.Conclusion(ranked), err)
		}
		if line := e.Search.RankedLines(ranked)[0]; (line.Rank == nil) != (metric == "bits_to(0.99)") {
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

// Bits to an accuracy are interpolated between the evaluations around it, in the accounting that
// was asked for.
func TestTable(t *testing.T) {
	o := &Outcome{Job: Job{Title: "a,b", Config: train.Default()}, Status: train.Finished, Rows: []train.Row{
		{TestScores: metric.TestScores{TestAccAvg: 0.1,
			TestAccMin: 0.1}}, {TestScores: metric.TestScores{TestAccAvg: 0.6, TestAccMin: 0.2},
			Traffic: metric.Traffic{BitsSharedSeed: 1000, BitsReference: 3000}},
		{TestScores: metric.TestScores{TestAccAvg: 0.7, TestAccMin: 0.55},
			Traffic: metric.Traffic{BitsSharedSeed: 2000, BitsReference: 6000}}}}
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
