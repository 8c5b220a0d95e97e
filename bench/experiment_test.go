package bench

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fspda/train"
)

// experiment reads an experiment from a file.
func experiment(t *testing.T, text string) (*Experiment, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

// refuses wants an error about the configuration with the given words of each file; without words,
// none.
func refuses(t *testing.T, files map[string]string) {
	t.Helper()
	for text, words := range files {
		e, err := experiment(t, text)
		if err == nil {
			_, err = e.Jobs(Options{Scale: Scale{Share: 1}})
		}
		_, ok := errors.AsType[*train.ConfigError](err)
		if words == "" && err != nil || words != "" && (!ok || !strings.Contains(err.Error(), words)) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
}

// A figure that a user writes needs runs only; the file gives its keys, seeds and curves.
func TestOwnFigure(t *testing.T) {
	f, err := experiment(t, "common: {agents: 4, iterations: 60}\nruns:\n- {name: sa, config: {algo: fspda-sa}}\n"+
		"- {name: other, title: DSGD, config: {algo: dsgd, theta: 0.3, density: 1}}\n"+
		"- {name: whole, config: {algo: qg-dsgdm, momentum: 0.9}}\nseeds: 2\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := f.Jobs(Options{Scale: Scale{Share: 1}})
	if err != nil || len(jobs) != 6 || len(f.Panels) != 3 || f.ID != "mine" || f.Seeds.String() != "1,2" {
		t.Fatalf("%+v, %v, %v", f, jobs, err)
	}
	if j := jobs[2]; j.Title != "DSGD" || j.Config.Theta.V != 0.3 || j.Config.Agents != 4 ||
		!slices.Equal(j.Shared, []string{"agents", "iterations", "algo", "theta", "density"}) {
		t.Errorf("%+v", jobs[2])
	}
	if jobs[0].Title != "sa 10 %" || jobs[4].Title != "whole" {
		t.Errorf("titles %q and %q", jobs[0].Title, jobs[4].Title)
	}
	f, err = experiment(t, "base: {iterations: 4000}\nruns: [{name: a, title: Ours, set: {density: 0.1}}]")
	if err != nil {
		t.Fatal(err)
	}
	for share, want := range map[float64]string{1: "Ours", 0.25: "Ours 20 %"} {
		jobs, err := f.Jobs(Options{Scale: Scale{Share: share, Retune: share < 1}})
		if err != nil || jobs[0].Title != want {
			t.Errorf("scale %v: %v, %v, want the title %q", share, jobs, err, want)
		}
	}
	refuses(t, map[string]string{
		"runs: []": "has no runs: there is nothing to run",
		"runs: [{name: a}]\npanels: [{metric: acc}]":                 "metric",
		"runs: [{name: a}]\npanels: [{metric: consensus, x: time}]":  "did you mean virtual_time?",
		"runs: [{name: a}]\npanels: [{metric: consensus, y: bar}]":   `y "bar": there are linear, log`,
		"runs: [{name: a}]\npanels: [{metric: consensus, group: g}]": "the runs have no groups",
		"runs: [{name: a}, {name: Table.md}]":                        "a file that the figure writes",
		"runs: [{name: a, config: {bta: 3}}]":                        "run a: config: set: key",
		"runs: [{name: a}, {name: a}]":                               "occurs twice",
		"runs: [{name: 'a/b'}]":                                      "no name of a folder",
		"runs: [{name: a}, {name: ..}]":                              "no name of a folder",
		"curves: [{name: a}]":                                        "the keys are title",
		"runs: [{name: a, config: {bta: 1}}]":                        `did you mean "eta"?`,
		"runs: [{name: a, config: {algo: dgd}}]":                     "did you mean dsgd?",
		"runs: [{name: a, config: {alpha: 0.1}}]\nseeds: [1,1]":      "different seeds",
	})
	if _, err := f.Jobs(Options{Points: -1, Scale: Scale{Share: 1}}); err == nil ||
		!strings.Contains(err.Error(), "--eval-points -1: expected 1 or more") {
		t.Errorf("error %v", err)
	}
	if _, err := f.Jobs(Options{Variant: "printed", Scale: Scale{Share: 1}}); err == nil ||
		!strings.Contains(err.Error(), "the file has no variants") {
		t.Errorf("error %v", err)
	}
}

// An added algorithm has those settings of the figure's first run that it can use, in
// each group; its name says what was changed, and its own keys must have an effect.
func TestAddCurve(t *testing.T) {
	f, err := FindFigure("1")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"d2", "dsgd,theta=0.3,edges=bernoulli(0.5)", "local-sgd", "choco,compress=topk"} {
		if err := f.Add(spec); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Variant: "released", Scale: Scale{Share: 1e-3, Retune: true}, Adjust: synthetic(300, 50),
		Without: []string{"swarm", "kgt"}}
	jobs, err := f.Jobs(o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range jobs[len(jobs)-4:] {
		got = append(got, j.Name+": "+j.Title)
	}
	if want := []string{"d2: d2", "dsgd-theta_0.3-edges_bernoulli_0.5_: dsgd theta=0.3 edges=bernoulli(0.5) 10 %",
		"local-sgd: local-sgd", "choco-compress_topk: choco compress=topk 10 %"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range []struct{ spec, words string }{{"dgd", "did you mean dsgd?"}, {"dsgd,theta", "NAME,key=value"},
		{"d2", "the figure has this curve"}} {
		if err := f.Add(c.spec); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %q", c.spec, err, c.words)
		}
	}
	o.Only, o.Without = nil, f.RunNames()
	if _, err := f.Jobs(o); err == nil || !strings.Contains(err.Error(), "no run is left") {
		t.Errorf("error %v", err)
	}
}

// A pair of --set is a line of YAML, whatever its value has in it.
func TestKeyValue(t *testing.T) {
	for pair, want := range map[string]string{"batch=32": "batch: 32", "hidden=[8,4]": "hidden: [8,4]",
		" edges =bernoulli(0.1)": "edges: 'bernoulli(0.1)'", "params={a: 1}": "params: {a: 1}", "batch": ""} {
		got, err := KeyValue(pair)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", pair, got, err, want)
		}
	}
}

// Files in the formats of earlier versions make the same runs as today's: the same names, titles,
// seeds and configurations.
func TestDialects(t *testing.T) {
	for _, c := range []struct {
		old, now string
		kind     Kind
	}{
		{"common: {agents: 4, iterations: 60}\nflavours: {x: {alpha: 0.2}}\nseeds: 2\nruns: [{name: a, group: g, " +
			"config: {algo: dsgd}, flavours: {x: {theta: 0.3}}}]\n",
			"base: {agents: 4, iterations: 60}\nvariants: {x: {alpha: 0.2}}\nseeds: 2\nruns: [{name: a, group: g, " +
				"set: {algo: dsgd}, variants: {x: {theta: 0.3}}}]\n", Figure},
		{"base: {algo: dsgd}\ngrid: {alpha: [0.1, 0.3]}\nrandom: {theta: 'uniform(0.1,0.4)'}\nsamples: 3\nseed: 9\n" +
			"seeds: [4, 7]\nmetric: bits_to(0.9)\nbest: min\nbits: 1e9\naccounting: packed\n",
			"base: {algo: dsgd}\nruns: [{grid: {alpha: [0.1, 0.3]}, random: {theta: 'uniform(0.1,0.4)'}}]\nsearch: " +
				"{samples: 3, seed: 9, seeds: [4, 7], metric: bits_to(0.9), best: min, budgets: [{bits: 1e9}], " +
				"accounting: packed}\n", Ranking},
		{"base: {agents: 4}\nmethods: [{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}, {name: b, set: {algo: sgd}, " +
			"grid: {alpha: [0.1, 0.3]}}]\nseeds: [9]\nreport: [1, 2]\nbits: 1e9\n",
			"base: {agents: 4}\nruns: [{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}, {name: b, set: {algo: sgd}, " +
				"grid: {alpha: [0.1, 0.3]}}]\nsearch: {seeds: [9], budgets: [{bits: 1e9}]}\nseeds: [1, 2]\n", Tuning},
		{"methods: [{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}]\n", "runs: [{set: {algo: dsgd}, grid: {alpha: " +
			"[0.1, 0.3]}}]\nsearch: {seeds: [101, 102]}\nseeds: 3\n", Tuning},
		{"folder: q\ntasks: [{name: a, priority: 2, command: experiment x/a.yaml}]\n",
			"folder: q\nfiles: [{file: x/a.yaml, priority: 2}]\n", Queue},
	} {
		old, err := experiment(t, c.old)
		if err != nil {
			t.Fatalf("%s: %v", c.old, err)
		}
		now, err := experiment(t, c.now)
		if err != nil || old.Kind() != c.kind || now.Kind() != c.kind {
			t.Fatalf("%s: %v, kinds %s and %s, want %s", c.now, err, old.Kind(), now.Kind(), c.kind)
		}
		if !reflect.DeepEqual(old, now) {
			t.Errorf("%s:\n%+v\nwant\n%+v", c.old, old, now)
		}
		if c.kind == Queue {
			continue
		}
		o := Options{Scale: Scale{Share: 1}}
		if c.kind == Figure {
			o.Variant = "x"
		}
		a, errA := old.Jobs(o)
		b, errB := now.Jobs(o)
		if errA != nil || errB != nil || len(a) < 2 || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %v, %v\n%+v\nwant\n%+v", c.old, errA, errB, a, b)
		}
	}
	// Folders keep the names that earlier versions gave, so that begun studies continue.
	for text, want := range map[string]string{
		"grid: {edges: ['bernoulli(0.5)'], alpha: [0.1]}\nseeds: [4]": "001-edges=bernoulli_0.5_-alpha=0.1-seed-4",
		"methods: [{set: {algo: dsgd}, grid: {alpha: [0.1]}}]":        "search-001-dsgd-alpha_0.1-seed-101",
	} {
		e, err := experiment(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if jobs, err := e.Jobs(Options{}); err != nil || jobs[0].Name != want {
			t.Errorf("%v, name %s, want %s", err, jobs[0].Name, want)
		}
	}
}

// A ranking may have several runs. The name of a point begins with the name of its run.
func TestRankingOfRuns(t *testing.T) {
	e, err := experiment(t, "runs: [{name: a, set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}, {set: {algo: sgd}}]\n"+
		"search: {metric: test_acc_min}\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := e.Jobs(Options{})
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	if want := []string{"001-a-alpha=0.1", "002-a-alpha=0.3", "003-sgd"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v, want %q", names, err, want)
	}
}
