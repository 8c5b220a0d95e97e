package config

import (
	"os"
	"path/filepath"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
)

// labSet is shared by all tests; it is immutable.
var labSet = func() *data.Set {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 3})
	if err != nil {
		panic(err)
	}
	return set
}()

// small is a configuration of a small run.
func small() Config {
	c := Default()
	c.DataTrain, c.DataTest, c.Hidden = 400, 100, Widths{6}
	c.Agents, c.Graph, c.Partition, c.Batch = 5, "ring", "sorted", 16
	c.Iterations, c.EvalPoints, c.Checkpoint = 60, 4, 0
	return c
}

func labModel(tb testing.TB, c Config) *model.Engine {
	tb.Helper()
	net, err := model.MLP(model.MLPOptions{Inputs: labSet.Features(), Classes: labSet.Classes, Hidden: c.Hidden,
		Activation: c.Activation, WeightDecay: c.L2()})
	if err != nil {
		tb.Fatal(err)
	}
	return model.NewEngine(net, cpu.New())
}

func resolve(tb testing.TB, c Config) (*Setup, *model.Engine) {
	tb.Helper()
	m := labModel(tb, c)
	s, err := c.Resolve(labSet, m)
	if err != nil {
		tb.Fatal(err)
	}
	return s, m
}

// withLinks writes a file of links and returns its path.
func withLinks(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "wan.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
