package bench

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/train"
)

func ownFigure(t *testing.T, text string) (*Figure, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadFigure(path)
}

// A figure of one's own needs runs only; its keys, its seeds and its curves are those of the file.
func TestOwnFigure(t *testing.T) {
	f, err := ownFigure(t, "common: {agents: 4, iterations: 60}\nruns:\n- {name: sa, config: {algo: fspda-sa}}\n"+
		"- {name: other, title: DSGD, config: {algo: dsgd, theta: 0.3, density: 1}}\n"+
		"- {name: whole, config: {algo: qg-dsgdm, momentum: 0.9}}\nseeds: 2\n")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := f.Jobs(FigureOptions{Scale: Scale{Share: 1}})
	if err != nil || len(jobs) != 3 || len(f.Panels) != 3 || f.ID != "mine" || f.Seeds.String() != "1,2" {
		t.Fatalf("%+v, %v, %v", f, jobs, err)
	}
	if j := jobs[1]; j.Title != "DSGD" || j.Config.Theta.V != 0.3 || j.Config.Agents != 4 ||
		!slices.Equal(j.Shared, []string{"agents", "iterations", "algo", "theta", "density"}) {
		t.Errorf("%+v", jobs[1])
	}
	if jobs[0].Title != "sa 10 %" || jobs[2].Title != "whole" {
		t.Errorf("titles %q and %q", jobs[0].Title, jobs[2].Title)
	}
	for text, words := range map[string]string{
		"runs: []": "has no runs",
		"runs: [{name: a}]\npanels: [{metric: acc}]":                 "metric",
		"runs: [{name: a}]\npanels: [{metric: consensus, x: time}]":  "did you mean virtual_time?",
		"runs: [{name: a}]\npanels: [{metric: consensus, y: bar}]":   `y "bar": there are linear, log`,
		"runs: [{name: a}]\npanels: [{metric: consensus, group: g}]": "the runs have no groups",
		"runs: [{name: a}, {name: Table.md}]":                        "a file that the figure writes",
		"runs: [{name: a, config: {bta: 3}}]":                        "config: run a: key",
		"runs: [{name: a}, {name: a}]":                               "occurs twice",
		"runs: [{name: 'a/b'}]":                                      "no name of a folder",
		"runs: [{name: a}, {name: ..}]":                              "no name of a folder",
		"curves: [{name: a}]":                                        "the keys are title",
		"runs: [{name: a, config: {bta: 1}}]":                        `did you mean "eta"?`,
		"runs: [{name: a, config: {algo: dgd}}]":                     "did you mean dsgd?",
		"runs: [{name: a, config: {alpha: 0.1}}]\nseeds: [1,1]":      "different seeds",
	} {
		f, err := ownFigure(t, text)
		if err == nil {
			_, err = f.Jobs(FigureOptions{Scale: Scale{Share: 1}})
		}
		if _, ok := errors.AsType[*train.ConfigError](err); !ok || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
	if _, err := f.Jobs(FigureOptions{Points: -1, Scale: Scale{Share: 1}}); err == nil ||
		!strings.Contains(err.Error(), "--eval-points -1: expected 1 or more") {
		t.Errorf("error %v", err)
	}
	if _, err := f.Jobs(FigureOptions{Variant: "printed", Scale: Scale{Share: 1}}); err == nil ||
		!strings.Contains(err.Error(), "no flavour of this name") {
		t.Errorf("error %v", err)
	}
}

// An algorithm that is added has the settings of the figure's first run, with what it admits, in each
// group; its name says what was changed, and its own keys must have an effect.
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
	o := FigureOptions{Variant: "released", Scale: Scale{Share: 1e-3, Retune: true}, Adjust: synthetic(300, 50),
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
