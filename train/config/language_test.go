package config

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"fspda/data"
	"fspda/internal/testing/realdata"
	"fspda/model"
)

// The cosine schedule by iterations gives the golden rates, which nanoGPT's code computed.
func TestCosineIterations(t *testing.T) {
	var g struct {
		Schedule struct {
			Rate   float64      `json:"learning_rate"`
			Min    float64      `json:"min_lr"`
			Warmup int          `json:"warmup_iters"`
			Decay  int          `json:"lr_decay_iters"`
			At     [][2]float64 `json:"at"`
		}
	}
	b, err := os.ReadFile(realdata.Path(t, "gpt-tiny-golden.json"))
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := Schedule{Alpha: g.Schedule.Rate, Eta: 2 * g.Schedule.Rate, Shape: CosineIterations{
		Warmup: g.Schedule.Warmup, End: g.Schedule.Decay, Min: g.Schedule.Min / g.Schedule.Rate}}
	for _, at := range g.Schedule.At {
		alpha, eta := s.At(int(at[0]))
		if math.Abs(alpha-at[1]) > 1e-10*at[1] || math.Abs(eta-2*at[1]) > 1e-10*at[1] {
			t.Errorf("iteration %v: %v and %v, want %v and twice that", at[0], alpha, eta, at[1])
		}
	}
}

// Defaults depend on network and data set.
func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		set         func(*Config)
		model, data string
		batch       int
		optimizer   string
	}{
		{func(*Config) {}, "mlp", "synthetic", 64, "auto"},
		{func(c *Config) { c.Data = "text" }, "gpt-nano", "text", 12, "adamw"},
		{func(c *Config) { c.Model = "llama-nano" }, "llama-nano", "synthetic-text", 12, "adamw"},
		{func(c *Config) { c.Model = "gpt-char" }, "gpt-char", "synthetic-text", 64, "adamw"},
		{func(c *Config) { c.Model, c.Data = "mlp", "text"; c.SetExplicit("model") }, "mlp", "synthetic", 64, "auto"},
		{func(c *Config) { c.Model, c.Data = "gpt2", "mnist"; c.SetExplicit("data") }, "gpt2", "synthetic", 12,
			"adamw"},
	} {
		given := Default()
		c.set(&given)
		d := given.Defaults()
		if d.Model != c.model || d.Data != c.data || d.Batch != c.batch || d.Optimizer != c.optimizer {
			t.Errorf("%s on %s: %s on %s, batch %d, %s", given.Model, given.Data, d.Model, d.Data, d.Batch, d.Optimizer)
		}
	}
	c := Config{NetworkKeys: NetworkKeys{Model: "gpt-char"}}
	if c.Window() != 256 {
		t.Error(c.Window())
	}
	if c.Block = 32; c.Window() != 32 {
		t.Error(c.Window())
	}
}

// reader is a network that reads tokens, or not.
type reader struct{ tokens bool }

func (reader) Dim() int { return 100 }

func (r reader) Describe() model.Description {
	d := model.Description{Tensors: model.Vectors(60, 40)}
	if r.tokens {
		d.Window = 8
	}
	return d
}

// What does not fit text is refused.
func TestTextIsRefused(t *testing.T) {
	set, err := data.Open("synthetic-text", data.OpenOptions{TrainSize: 2000, TestSize: 300, Window: 8})
	if err != nil {
		t.Fatal(err)
	}
	base := func() Config {
		c := Default()
		c.Data = "text"
		c = c.Defaults()
		c.Agents, c.Data = 4, "synthetic-text"
		return c
	}
	for want, c := range map[string]struct {
		set   func(*Config)
		reads bool
	}{
		"does not read tokens": {func(*Config) {}, false},
		"alpha falls until iteration 100": {func(c *Config) {
			c.DecayT = 100
			c.SetExplicit("warmup_iterations")
		}, true},
		"expected at most alpha": {func(c *Config) { c.MinAlpha = 1 }, true},
		"needs schedule cosine without " +
			"warmup_iterations": {func(c *Config) { c.Warmup = 2; c.SetExplicit("warmup") }, true},
		"eval_random " +
			"0": {func(c *Config) { c.EvalRandom, c.EvalTest = 2, 3; c.SetExplicit("eval_test") }, true},
		"data " +
			"text": {func(c *Config) { c.Tokenizer = "byte"; c.SetExplicit("tokenizer") }, true},
		"pictures": {func(c *Config) { c.Augment = "none"; c.SetExplicit("augment") }, true},
	} {
		conf := base()
		c.set(&conf)
		_, err := conf.Resolve(set, reader{c.reads})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s, err := base().Resolve(set, reader{true})
	if err != nil {
		t.Fatal(err)
	}
	if s.Window != 8 || s.Config.Metrics != MetricsFull || len(s.Shards) != 4 || s.Schedule.Shape == nil ||
		s.Skew() != 1 {
		t.Errorf("%+v", s)
	}
	if s.Config.Optimizer != "adamw" || s.Config.Placement != "local" || len(s.Warnings) > 0 {
		t.Errorf("optimizer %s, placement %s, warnings %q", s.Config.Optimizer, s.Config.Placement, s.Warnings)
	}
	asked := base()
	asked.Placement = "corrected"
	if s, err = asked.Resolve(set, reader{true}); err != nil || s.Config.Placement != "corrected" {
		t.Errorf("placement %s, error %v", s.Config.Placement, err)
	}
	if _, err := Default().Resolve(set, reader{true}); err == nil {
		t.Error("no error for dirichlet-equal on text without documents")
	}
}
