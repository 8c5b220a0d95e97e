package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fspda/data"
	"fspda/dist"
	"fspda/train/setting"
)

// effect says when keys have an effect on a run, if that does not depend on the names of algorithm
// and network alone. A key whose other values are refused needs no entry: its only value is true of
// every run.
type effect struct {
	keys  string // separated by spaces
	when  func(s *Setup, given Config) bool
	needs string // what gives the keys an effect, to complete "needs"
}

// effects is the table of conditions. Method.Keys and ModelName.Keys list the keys that only some
// algorithms and networks have.
var effects = []effect{
	{"data_dir", func(_ *Setup, c Config) bool { return !strings.HasPrefix(c.Data, "synthetic") },
		"a data set that is read from files: name it with data"},
	{"data_train data_test", func(_ *Setup, c Config) bool { return !slices.Contains(readSets, c.Data) },
		"data synthetic, synthetic-images or synthetic-text"},
	{"crop image_size jpeg on_bad", func(_ *Setup, c Config) bool { return !slices.Contains(fixedSets, c.Data) },
		"data imagenet, folder or synthetic-images"},
	{"tokenizer", func(_ *Setup, c Config) bool { return c.Data == "text" }, "data text"},
	{"augment", func(s *Setup, c Config) bool { return !s.readsText(c) }, "a data set of pictures"},
	{"eval_random sample_tokens", (*Setup).readsText, "data text or synthetic-text"},
	{"eval_agents", func(s *Setup, c Config) bool { return c.EvalAgents <= s.Graph.N }, "at least as many agents"},
	{"eval_test", func(_ *Setup, c Config) bool { return c.EvalRandom == 0 }, "eval_random 0"},
	{"eval_test", func(s *Setup, c Config) bool { return c.EvalTest <= s.Set.Test.Len() },
		"at least as many test examples"},
	{"init_head", func(_ *Setup, c Config) bool { return c.Init != "" }, "init, a file of weights"},
	{"iterations", func(s *Setup, c Config) bool { return c.Epochs == 0 || c.Iterations == s.Config.Iterations },
		"epochs 0"},
	{"eval_points", func(s *Setup, c Config) bool {
		return c.EvalEpochs == 0 || c.EvalPoints == s.Config.EvalPoints
	}, "eval_epochs 0"},
	{"alpha", func(s *Setup, c Config) bool { return !s.uses("rho") || c.Rho.Auto },
		"rho auto, or an algorithm that does not take its step from rho"},
	{"theta", func(s *Setup, _ Config) bool { return !s.uses("weights") || s.Config.Weights == weightsConstant },
		"weights constant"},
	{"initiator", func(_ *Setup, c Config) bool { return c.Swarm != "blocking" }, "swarm nonblocking"},
	{"c_max", func(s *Setup, c Config) bool { return c.Coef == "inverse" || s.RealTime() },
		"coef inverse or clock real"},
	{"compute_time", (*Setup).drawsTimes, drawnTimes},
	{"slowness", func(s *Setup, c Config) bool { return c.GradientTime > 0 || s.drawsTimes(c) },
		"gradient_time above 0, or " + drawnTimes},
	{"give_up", func(s *Setup, _ Config) bool { return s.RealTime() }, "clock real"},
	{"eta_schedule", func(s *Setup, c Config) bool { return s.Traits.Dual && c.Schedule != "constant" },
		"an algorithm with a dual (fspda-sa, fspda-storm) and schedule cosine"},
	{"warmup", func(_ *Setup, c Config) bool { return c.Schedule != "constant" }, "schedule cosine"},
	{"warmup", func(_ *Setup, c Config) bool { return !c.cosineByIterations() },
		"schedule cosine without warmup_iterations, decay_iterations and min_alpha"},
	{"warmup_iterations decay_iterations min_alpha", func(_ *Setup, c Config) bool { return c.Schedule != "constant" },
		"schedule cosine"},
	{"decay", func(_ *Setup, c Config) bool { return c.WeightDecay != 0 }, "weight_decay above 0"},
	{"graph edges", func(s *Setup, _ Config) bool { return s.exchanges() }, anExchange},
	{"mask", func(s *Setup, _ Config) bool { return s.masked() }, anExchange},
	{"density", func(s *Setup, c Config) bool { return s.masked() && (s.Config.Mask != "all" || c.Density == 1) },
		anExchange + ", and a mask other than all"},
	{"batch", func(_ *Setup, c Config) bool { return c.Sampling != "full" }, "sampling epochs or iid"},
	{"accumulate", func(s *Setup, c Config) bool { return c.Accum <= s.batch() },
		"a batch of at least as many examples"},
	{"precision", func(_ *Setup, c Config) bool { return c.Device != "cpu" || c.Precision == Default().Precision },
		"a GPU (device cuda, or auto)"},
	{"bn bn_batches", func(s *Setup, _ Config) bool { return len(s.Buffers) > 0 }, "a network with batch norm"},
	{"bn_batches", func(_ *Setup, c Config) bool { return c.BN != BNLocal }, "bn pooled or recalibrate"},
}

// The data sets of this module that are read from files, and those whose examples have a fixed
// size. Those that a program registers may use every key.
var (
	readSets  = []string{"mnist", "cifar10", "cifar100", "fashion-mnist", "imagenet", "folder", "writers", "text"}
	fixedSets = []string{"synthetic", "mnist", "cifar10", "cifar100", "fashion-mnist", "writers", "text",
		"synthetic-text"}
)

const (
	drawnTimes = "algo fspda-async without links and with clock virtual"
	anExchange = "two agents or more, and an algorithm that exchanges over a graph"
)

// readsText reports whether the data set is text.
func (s *Setup) readsText(c Config) bool { return IsText(c.Data) || s.Set.Text != nil }

// exchanges reports whether the agents send anything over edges of a graph.
func (s *Setup) exchanges() bool {
	return !s.Traits.Edges.Collective && s.Graph.N > 1
}

// masked reports whether the agents send vectors on which a mask could be.
func (s *Setup) masked() bool {
	return s.exchanges() || s.AllReduces() && s.Traits.Masks && s.Graph.N > 1
}

// drawsTimes reports whether times of gradients are drawn: in virtual time, and to choose eta.
func (s *Setup) drawsTimes(c Config) bool {
	return s.Asynchronous() && s.Links == nil && (!s.RealTime() || c.Eta.Auto)
}

// uses reports whether the algorithm of s lists a key, or uses it by what it is.
func (s *Setup) uses(key string) bool { return s.method.uses(key) }

// uses reports whether the method reads a key of algorithms.
func (m method) uses(key string) bool {
	switch key {
	case "eta":
		return m.traits.Dual
	case "mixing":
		return m.traits.Mixing
	}
	return slices.Contains(m.Keys, key)
}

// Unused is a key that has no effect on a run.
type Unused struct {
	Key   string
	Value string
	Needs string // what would use it, to complete "needs"
}

// Error returns the refusal of the key in a run, or in several, as where says.
func (u Unused) Error(where string) error {
	return &Error{Key: u.Key, Got: u.Value, Want: fmt.Sprintf("has no effect on %s: it needs %s; leave it out, or "+
		"choose what uses it", where, u.Needs)}
}

// Unused lists the keys that have no effect on the setup that was resolved from given.
func (s *Setup) Unused(given Config) (all []Unused) {
	for _, name := range slices.Sorted(maps.Keys(given.Params)) {
		if _, ok := s.Config.Params[name]; !ok {
			all = append(all, Unused{paramKey(name), setting.Text(given.Params[name]), withParam(name)})
		}
	}
	for _, f := range given.Fields() {
		if needs := s.missing(f.Key, given); needs != "" {
			all = append(all, Unused{f.Key, f.text(), needs})
		}
	}
	return all
}

// RefuseUnused refuses keys of data, network and device that were set explicitly and have no effect
// where a model is used and not trained.
func (c Config) RefuseUnused(keys []string) error {
	var errs []error
	s := &Setup{Config: resolving(c)} // the conditions of these keys ask for nothing else
	for _, f := range c.Fields() {
		if !slices.Contains(keys, f.Key) || !slices.Contains(c.explicit, f.Key) {
			continue
		}
		if needs := s.missing(f.Key, c); needs != "" {
			errs = append(errs, Unused{f.Key, f.text(), needs}.Error("this command"))
		}
	}
	return errors.Join(errs...)
}

// missing says what gives a key an effect that it lacks; nothing if it has one.
func (s *Setup) missing(key string, given Config) string {
	if methods := withFeature(func(m method) bool { return m.uses(key) }); len(methods) > 0 && !s.uses(key) {
		return "algo " + setting.Either(methods)
	}
	if networks := modelsWith(key); len(networks) > 0 && !slices.Contains(networks, given.Model) {
		return "model " + setting.Either(networks)
	}
	if slices.Contains(optimizerKeys(), key) && !reads(s.Config.optimizer(), key) {
		return readersOf(key)
	}
	if kind, _ := dist.CompressorNamed(given.Compress); key == "norms" && !kind.Norms {
		return "compress " + setting.Either(dist.FormsOf(dist.CompressorsThat(func(k dist.CompressorKind) bool {
			return k.Norms
		})))
	}
	for _, e := range effects {
		if slices.Contains(strings.Fields(e.keys), key) && !e.when(s, given) {
			return e.needs
		}
	}
	return ""
}

// Effective lists the keys that have an effect on the setup that was resolved from given, with
// their resolved values. Setups of equal lists are the same run.
func (s *Setup) Effective(given Config) string {
	var b strings.Builder
	resolved := s.Config.Stored()
	for _, f := range resolved.Fields() {
		if s.missing(f.Key, given) == "" {
			fmt.Fprintf(&b, "%s=%s\n", f.Key, f.text())
		}
	}
	return b.String()
}

// refuseUnused refuses the keys that were set explicitly and have no effect.
func (s *Setup) refuseUnused(given Config) error {
	var errs []error
	for _, u := range s.Unused(given) {
		if slices.Contains(given.explicit, u.Key) {
			errs = append(errs, u.Error("this run"))
		}
	}
	return errors.Join(errs...)
}

// SetExplicit marks keys as set by the user, by flag or in a file: Resolve refuses them if they
// have no effect on the run. Parse marks the keys that it reads.
func (c *Config) SetExplicit(keys ...string) {
	c.explicit = slices.Clone(c.explicit) // other configurations share it
	for _, key := range keys {
		if !slices.Contains(c.explicit, key) {
			c.explicit = append(c.explicit, key)
		}
	}
}

// TakeExplicit returns the keys that are marked, and unmarks them.
func (c *Config) TakeExplicit() []string {
	keys := c.explicit
	c.explicit = nil
	return keys
}

// FindData chooses the data set by the files of data_dir, if data was not set.
func (c *Config) FindData() error {
	if c.DataDir == "" || !slices.Contains(c.explicit, "data_dir") || slices.Contains(c.explicit, "data") ||
		c.Data != Default().Data && c.Data != c.Defaults().Data {
		return nil
	}
	found := data.Recognize(c.DataDir)
	if _, reads := c.language(); reads && found == "" {
		found = dataText
	}
	if found == "" {
		return Invalid("data_dir", c.DataDir, "no data set is set, and the names of the files match none: add data, "+
			"which is %s", setting.Either(readSets))
	}
	c.Data = found
	return nil
}

// Explicit lists the keys that are marked.
func (c Config) Explicit() []string { return slices.Clone(c.explicit) }
