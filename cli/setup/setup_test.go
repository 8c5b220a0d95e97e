package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"fspda/cpu"
	"fspda/cpu/isa"
	"fspda/train"
	"fspda/train/algo"
	"fspda/train/config"
)

// Agents share the cores; each has at least one.
func TestAgentThreads(t *testing.T) {
	for _, c := range []struct{ threads, agents, want int }{{1, 10, 1}, {8, 10, 1}, {8, 8, 1}, {8, 4, 2}, {8, 3, 2},
		{8, 1, 8}} {
		if got := AgentThreads(of(c.threads, c.agents)); got != c.want {
			t.Errorf("%d threads for %d agents: %d each, want %d", c.threads, c.agents, got, c.want)
		}
	}
	if got := AgentThreads(of(0, 1)); got < 1 {
		t.Errorf("%d of all cores", got)
	}
}

// of is a configuration with so many threads and agents.
func of(threads, agents int) (c train.Config) {
	c.Threads, c.Agents = threads, agents
	return c
}

// Every method trains a language model with the defaults for it, and with each optimizer that it
// takes.
func TestLanguageDefaults(t *testing.T) {
	for _, name := range train.Algorithms() {
		for _, optimizer := range []string{"", "sgd", "heavy-ball", "nesterov", "adamw"} {
			c, err := config.Made(func(c *train.Config) error {
				c.Algo, c.Model = name, "gpt-nano"
				if optimizer != "" {
					c.Optimizer = optimizer
				}
				if name == "relaysgd" {
					c.Graph = "path"
				}
				c.Agents, c.Layers, c.Heads, c.Width, c.DataTrain, c.DataTest = 4, 1, 2, 8, 4000, 1000
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			set, err := OpenData(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = ResolveAgent(c, set, cpu.New()); err != nil &&
				(optimizer == "" || !strings.Contains(err.Error(), "is stated for")) {
				t.Errorf("%s with optimizer %s: %v", name, optimizer, err)
			}
		}
	}
}

// A run whose kernels are loops in Go says so, and what assembly needs.
func TestSlowKernels(t *testing.T) {
	c := train.Default()
	c.DataTrain, c.DataTest, c.Batch = 400, 100, 16
	set, err := OpenData(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range isa.Available() {
		isa.With(i, func() {
			s, _, err := ResolveAgent(c, set, cpu.New())
			if err != nil {
				t.Fatal(err)
			}
			if said := slices.Contains(s.Warnings, slowKernels); said != (i == isa.Go) {
				t.Errorf("%v: warned: %t, in %q", i, said, s.Warnings)
			}
		})
	}
}

// Keys of file and flags are explicit, and can be passed on as flags; those of defaults are not.
func TestExplicitKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.yaml")
	train.Register(train.Method{Name: "with-params", New: func(algo.Settings) algo.Algorithm { return algo.DSGD{} },
		Params: []train.Param{{Name: "a", Help: "first"}, {Name: "b", Help: "second"}, {Name: "c", Help: "third"}}})
	if err := os.WriteFile(file, []byte("{params: {a: 1, b: 2}, edges: 'bernoulli(0.1)', hidden: [8, 4], eta: auto}"),
		0o644); err != nil {
		t.Fatal(err)
	}
	c := train.Default()
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	ConfigFlags(fs, &c)
	if err := fs.Parse([]string{"--param", "b=3", "--param=c=4", "--data-train", "400",
		"--deterministic"}); err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig(file, "", fs)
	want := []string{"--edges=bernoulli(0.1)", "--hidden=8,4", "--eta=auto", "--param=a=1", "--param=b=3",
		"--data-train=400", "--deterministic=true", "--param=c=4"}
	got := Flags(c)
	if c.Params.String() != "a=1,b=3,c=4" {
		t.Error(c.Params)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// A batch norm that sees one value of a channel is warned of, on any network, size of pictures and
// parts of a batch, and no other is.
func TestWarnsOfNormsOfOneValue(t *testing.T) {
	for _, c := range []struct {
		network                          string
		crop, batch, accumulate, columns int // columns: of the pictures that the last batch norm sees
	}{
		{"resnet20", 4, 1, 1, 1}, {"resnet20", 4, 2, 1, 1}, {"resnet20", 4, 4, 4, 1}, {"resnet20", 4, 5, 4, 1},
		{"resnet20", 4, 9, 4, 1}, {"resnet20", 8, 1, 1, 2}, {"resnet20", 8, 4, 4, 2}, {"resnet18", 32, 1, 1, 1},
		{"resnet18", 64, 1, 1, 2}, {"resnet20-gn", 4, 1, 1, 0},
	} {
		of, err := config.Made(func(k *train.Config) error {
			k.Data, k.DataTrain, k.DataTest = "synthetic-images", 40, 10
			k.Model, k.Crop, k.ImageSize = c.network, c.crop, c.crop
			k.Agents, k.Batch, k.Accum, k.Partition = 2, c.batch, c.accumulate, "shuffled"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		set, err := OpenData(of)
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := ResolveAgent(of, set, cpu.New())
		if err != nil {
			t.Fatal(err)
		}
		size := (c.batch + c.accumulate - 1) / c.accumulate
		least := size
		if c.batch%size > 0 {
			least = c.batch % size
		}
		warned := slices.ContainsFunc(s.Warnings, func(w string) bool {
			return strings.Contains(w, "batch norm, which makes 0")
		})
		if want := least*c.columns*c.columns == 1; warned != want {
			t.Errorf("%+v: warned %v, want %v: %q", c, warned, want, s.Warnings)
		}
	}
}
