package setup

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
	"fspda/train"
	"fspda/train/config"
)

// unplanned is a network that does not tell the memory of its programs, for which it would be
// compiled.
type unplanned struct{ *model.Engine }

func (n unplanned) Describe() model.Description {
	d := n.Engine.Describe()
	d.Memory = nil
	return d
}

// resolver resolves configurations, and keeps the data sets and networks that they name.
type resolver struct {
	sets map[string]*data.Set
	nets map[string]*model.Engine
}

func newResolver() *resolver { return &resolver{map[string]*data.Set{}, map[string]*model.Engine{}} }

// resolve resolves the defaults with keys that a user set, on a small data set.
func (r *resolver) resolve(lines ...string) (*train.Setup, config.Config, error) {
	c, err := config.Made(func(c *train.Config) error { return c.Parse("", []byte(strings.Join(lines, "\n"))) })
	if err != nil {
		return nil, c, err
	}
	c.DataTrain, c.DataTest = 800, 50
	if config.IsText(c.Data) {
		c.DataTrain, c.DataTest = 20000, 2000
	}
	s, err := r.setup(c)
	return s, c, err
}

func (r *resolver) setup(c config.Config) (s *train.Setup, err error) {
	key := fmt.Sprint(c.Data, c.Window())
	if r.sets[key] == nil {
		if r.sets[key], err = OpenData(c); err != nil {
			return nil, err
		}
	}
	of, err := c.Network()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprint(key, c.Model, of.L2(), Transformer(c), c.Hidden)
	if r.nets[name] == nil {
		net, err := OpenModel(c, r.sets[key].Shape, r.sets[key].Classes)
		if err != nil {
			return nil, err
		}
		r.nets[name] = model.NewEngine(net, cpu.New())
	}
	return c.Resolve(r.sets[key], unplanned{r.nets[name]})
}

// again resolves what a run folder holds of a setup, as a resumed run does. It must be the same
// run, without a word on defaults.
func (r *resolver) again(t *testing.T, s *train.Setup, lines []string) {
	t.Helper()
	stored := s.Config.Stored()
	c := config.Default()
	if err := c.Parse("config.yaml", stored.YAML()); err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	resumed, err := r.setup(c)
	if err != nil {
		t.Errorf("%q: stored, it is refused: %v", lines, err)
		return
	}
	if a, b := string(stored.YAML()), string(resumed.Config.Stored().YAML()); a != b {
		t.Errorf("%q is stored as\n%s\nand resolved again\n%s", lines, a, b)
	}
	for _, w := range resumed.Warnings {
		if strings.Contains(w, ": its default ") {
			t.Errorf("%q: a resumed run says %q", lines, w)
		}
	}
}

// skipped draws whether a run is one of the seven of eight that only long tests resolve.
func skipped(draw *rand.Rand) bool { return draw.IntN(8) > 0 && os.Getenv("FSPDA_LONG") == "" }

// networks and the data sets that they read.
var networks = map[string]string{"mlp": "synthetic", "gn-lenet": "synthetic", "resnet20": "synthetic-images",
	"resnet20-evonorm": "synthetic-images", "gpt-nano": "", "llama-nano": ""}

// No method refuses a network, a length or a schedule because of a key that nobody set, and what a
// run folder holds of the run is the same run. FSPDA_LONG=1 resolves all these runs, else an eighth.
func TestDefaultsFitLengths(t *testing.T) {
	r := newResolver()
	bent, draw := map[string]int{}, rand.New(rand.NewPCG(1, 2)) // by key, in how many runs
	lengths := []string{"iterations: 1", "iterations: 10", "iterations: 50", "iterations: 500", "iterations: 1009",
		"epochs: 0.5", "epochs: 3", "local_steps: 7", ""}
	for _, net := range slices.Sorted(maps.Keys(networks)) {
		for _, algo := range config.Algorithms() {
			for i, length := range lengths {
				for _, schedule := range []string{"", "schedule: cosine"} {
					if net != "mlp" && net != "gpt-nano" && (i > 3 || schedule != "") {
						continue // what the first four lengths do not show is no matter of the network
					}
					if skipped(draw) {
						continue
					}
					lines := []string{"algo: " + algo, "model: " + net, length, schedule}
					if d := networks[net]; d != "" {
						lines = append(lines, "data: "+d)
					}
					s, c, err := r.resolve(lines...)
					if e, ok := errors.AsType[*train.ConfigError](err); ok && slices.Contains(c.Explicit(), e.Key) &&
						(e.Key == "schedule" || e.Key == "local_steps") {
						continue // the method has no rounds, or no step size that could follow a schedule
					}
					if err != nil {
						t.Errorf("%q: %v", lines, err)
						continue
					}
					for _, w := range s.Warnings {
						if key, _, ok := strings.Cut(w, " is "); ok && strings.Contains(w, ": its default ") {
							bent[key]++
						}
					}
					if net == "mlp" || net == "gpt-nano" {
						r.again(t, s, lines)
					}
				}
			}
		}
	}
	for _, key := range []string{"warmup", "warmup_iterations", "local_steps", "eval_points", "iterations",
		"params.outer_steps"} {
		if bent[key] == 0 {
			t.Errorf("%s kept its default in every run: %v", key, bent)
		}
	}
}

// A run in which one more key is set is refused for that key only, whatever it does to the defaults
// of others. FSPDA_LONG=1 resolves all of these runs, else an eighth.
func TestDefaultsFitSettings(t *testing.T) {
	values := map[string][]string{"batch": {"4", "300"}, "agents": {"1", "2", "3", "16", "40"},
		"alpha": {"1e-6", "1e-3", "5"}, "momentum": {"0.5"}, "local_steps": {"1", "3", "64"}, "epochs": {"0.3", "2.5"},
		"eval_epochs": {"2"}, "eval_points": {"1", "7", "100"}, "heads": {"2"}, "width": {"32", "90", "100"},
		"block": {"8"}, "density": {"1", "0.01"}, "clip_norm": {"0", "5"}, "weight_decay": {"0", "0.1"},
		"layer_lr": {`"*=0.5"`}, "min_alpha": {"1e-5", "0.01"}, "warmup_iterations": {"3"}, "warmup": {"0.5"},
		"decay_iterations": {"30"}, "eta": {"0.01"}, "gamma": {"0.1", "0.9"}, "theta": {"0.1"}, "beta": {"0.2"},
		"graph": {"ring", "path", "star", "torus", "grid", "erdos-renyi(0.5)", "one-peer-exp", "static-exp", "base(2)"},
		"edges": {"full", "matching", "one-edge", "periodic(7)", "one-peer-exp", "static-exp", "broadcast-one"}}
	language := []string{"alpha", "momentum", "heads", "width", "block", "clip_norm", "weight_decay", "layer_lr",
		"min_alpha", "warmup_iterations", "decay_iterations", "epochs"} // keys whose defaults differ with gpt-nano
	refusers := map[string]bool{} // keys that were set and refused
	r, stored, draw := newResolver(), 0, rand.New(rand.NewPCG(3, 4))
	for _, net := range []string{"mlp", "gpt-nano"} {
		for _, algo := range config.Algorithms() {
			for _, key := range slices.Sorted(maps.Keys(values)) {
				if net == "gpt-nano" && !slices.Contains(language, key) {
					continue
				}
				for _, v := range values[key] {
					if skipped(draw) {
						continue
					}
					lines := []string{"algo: " + algo, "model: " + net, key + ": " + v}
					if key != "epochs" {
						lines = append(lines, "iterations: 60")
					}
					s, c, err := r.resolve(lines...)
					if err == nil {
						if stored++; stored%10 == 0 {
							r.again(t, s, lines)
						}
						continue
					}
					e, ok := errors.AsType[*train.ConfigError](err)
					if !ok || !slices.Contains(c.Explicit(), e.Key) {
						t.Errorf("%q: %v", lines, err)
						continue
					}
					refusers[e.Key] = true
				}
			}
		}
	}
	for _, key := range []string{"batch", "momentum", "eval_points", "edges", "gamma", "layer_lr"} {
		if !refusers[key] {
			t.Errorf("no run was refused for %s, which was set", key)
		}
	}
}

// Few examples make a small batch, and a short text short windows. What is set is refused.
func TestDefaultsFitData(t *testing.T) {
	dev, err := OpenDevice(config.Default(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	file := filepath.Join(t.TempDir(), "short.txt")
	prepare := func(text int, lines ...string) (*train.Setup, error) {
		if err := os.WriteFile(file, []byte(strings.Repeat("a short text, ", 100)[:text]), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Made(func(c *train.Config) error { return c.Parse("", []byte(strings.Join(lines, "\n"))) })
		if err != nil {
			t.Fatal(err)
		}
		c.Device = "cpu"
		s, _, err := Prepare(c, dev)
		return s, err
	}
	for _, c := range []struct {
		text         int
		lines        []string
		batch, block int
		refused      string
	}{
		{1, []string{"data_train: 100", "data_test: 20"}, 10, 0, ""},
		{1, []string{"data_train: 12", "data_test: 20"}, 1, 0, ""},
		{1, []string{"data_train: 100", "data_test: 20", "batch: 64"}, 0, 0, "batch"},
		{1, []string{"data_train: 100", "data_test: 20", "sampling: iid"}, 64, 0, ""},
		{100, []string{"data: text", "data_dir: " + file, "iterations: 20"}, 12, 8, ""},
		{400, []string{"data: text", "data_dir: " + file, "agents: 2", "model: llama-nano"}, 12, 39, ""},
		{1400, []string{"data: text", "data_dir: " + file, "agents: 2"}, 12, 0, ""},
		{400, []string{"data: text", "data_dir: " + file, "block: 64"}, 0, 0, "data"},
	} {
		s, err := prepare(c.text, c.lines...)
		e, ok := errors.AsType[*train.ConfigError](err)
		switch {
		case c.refused != "":
			if !ok || e.Key != c.refused {
				t.Errorf("%q: error %v, want one of %s", c.lines, err, c.refused)
			}
		case err != nil:
			t.Errorf("%q: %v", c.lines, err)
		case s.Config.Batch != c.batch || s.Config.Block != c.block:
			t.Errorf("%q: batch %d and block %d, want %d and %d", c.lines, s.Config.Batch, s.Config.Block, c.batch,
				c.block)
		}
	}
}
