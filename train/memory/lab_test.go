package memory

import (
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
	"fspda/train/config"
)

// small is a configuration of a small run.
func small() config.Config {
	c := config.Default()
	c.Hidden = config.Widths{6}
	c.Agents, c.Graph, c.Partition, c.Batch = 5, "ring", "sorted", 16
	c.Iterations, c.EvalPoints = 60, 4
	return c
}

func resolve(t *testing.T, c config.Config) (*config.Setup, *model.Engine) {
	t.Helper()
	set, err := data.Synthetic(data.SyntheticOptions{Train: max(400, c.Agents), Test: 100, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	of, err := c.Network()
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden,
		Activation: c.Activation, WeightDecay: of.L2()})
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewEngine(net, cpu.New())
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}
