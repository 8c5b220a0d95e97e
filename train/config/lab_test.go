package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	of, err := c.Network()
	if err != nil {
		tb.Fatal(err)
	}
	net, err := model.MLP(model.MLPOptions{Inputs: labSet.Features(), Classes: labSet.Classes, Hidden: c.Hidden,
		Activation: c.Activation, WeightDecay: of.L2()})
	if err != nil {
		tb.Fatal(err)
	}
	if c.Mixup > 0 || c.Cutmix > 0 {
		if net, err = net.WithMixed(); err != nil {
			tb.Fatal(err)
		}
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

// refusal is a change of the small configuration, and what the error that it causes says.
type refusal struct {
	edit func(*Config)
	want []string
}

// refuses resolves changed configurations, each of which is an error of its keys.
func refuses(t *testing.T, all map[string]refusal) {
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			cfg := small()
			c.edit(&cfg)
			_, err := cfg.Resolve(labSet, labModel(t, small()))
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("error %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not mention %q", err, w)
				}
			}
		})
	}
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
