package runfolder

import (
	"math"
	"strings"
	"testing"

	"fspda/train/config"
	"fspda/train/metric"
)

// Every column but the iteration has a curve in a group, and no two have the same.
func TestScalarTags(t *testing.T) {
	seen := map[string]string{}
	for _, c := range metric.Described() {
		if (c.Tag == "") != (c.Name == "iteration") || c.Tag != "" && strings.Count(c.Tag, "/") != 1 ||
			seen[c.Tag] != "" {
			t.Errorf("column %s has the tag %q, as has %q", c.Name, c.Tag, seen[c.Tag])
		}
		seen[c.Tag] = c.Name
	}
	var r metric.Row
	r.Iteration, r.BitsTotal, r.TestAccAvg, r.TrainLossAvg = 7, 3e12, 0.5, metric.Num(math.NaN())
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
	c := config.Default()
	for seed, want := range map[uint64]any{7: 7.0, 1<<53 - 1: 1<<53 - 1.0, 1<<53 + 1: "9007199254740993",
		math.MaxUint64: "18446744073709551615"} {
		if c.Seed = seed; hyperparameters(c)["seed"] != want {
			t.Errorf("seed %d is %v, want %v", seed, hyperparameters(c)["seed"], want)
		}
	}
	if _, ok := p["threads"]; ok {
		t.Error("threads changes no result")
	}
}
