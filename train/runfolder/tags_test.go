package runfolder

import (
	"math"
	"strings"
	"testing"

	"fspda/train/config"
	"fspda/train/evaluate"
)

// Every column but the iteration has a curve in a group, and no two have the same.
func TestScalarTags(t *testing.T) {
	seen := map[string]string{}
	for _, name := range evaluate.Columns() {
		s, ok := scalarTags[name]
		if ok == (name == "iteration") || ok && strings.Count(s.tag, "/") != 1 || seen[s.tag] != "" {
			t.Errorf("column %s has the tag %q, as has %q", name, s.tag, seen[s.tag])
		}
		seen[s.tag] = name
	}
	if len(scalarTags) != len(evaluate.Columns())-1 {
		t.Errorf("%d tags for %d columns", len(scalarTags), len(evaluate.Columns()))
	}
	var r evaluate.Row
	r.Iteration, r.BitsTotal, r.TestAccAvg, r.TrainLossAvg = 7, 3e12, 0.5, evaluate.Num(math.NaN())
	got := map[string]float64{}
	if err := scalars(r, func(tag string, v float64) error { got[tag] = v; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, ok := got["train/loss"]; ok || got["bits/total_Gbit"] != 3000 || got["test/accuracy"] != 0.5 {
		t.Errorf("curves %v", got)
	}
}

// The hyperparameters are the keys that change results, as numbers where they are numbers.
func TestHyperparameters(t *testing.T) {
	p := hyperparameters(config.Default())
	if p["alpha"] != 0.3 || p["algo"] != "fspda-sa" || p["eta"] != "auto" || p["hidden"] != "100" ||
		p["deterministic"] != false {
		t.Errorf("hyperparameters %v", p)
	}
	if _, ok := p["threads"]; ok {
		t.Error("threads changes no result")
	}
}
