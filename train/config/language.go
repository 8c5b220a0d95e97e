package config

import (
	"slices"
	"strings"

	"fspda/train/setting"
)

// languageDefaults are the defaults of runs of a language model.
type languageDefaults struct {
	model             string
	window, batch     int
	iterations        int
	alpha, min, beta2 float64
	sample            int // Tokens that the mean model writes at each row; 0 for large networks.
}

// languageModels lists the networks that read tokens, with the settings of nanoGPT for networks of
// their size. The first is the default.
var languageModels = []languageDefaults{
	{"gpt-nano", 64, 12, 2000, 1e-3, 1e-4, 0.99, 200},
	{"gpt-char", 256, 64, 5000, 1e-3, 1e-4, 0.99, 0},
	{"gpt2", 1024, 12, 2000, 6e-4, 6e-5, 0.95, 0},
	{"gpt2-medium", 1024, 12, 2000, 6e-4, 6e-5, 0.95, 0},
	{"llama-nano", 64, 12, 2000, 1e-3, 1e-4, 0.99, 200},
}

// The data sets that are text.
const (
	dataText      = "text"
	dataSynthText = "synthetic-text"
)

// language returns the defaults of a language model that c names.
func (c Config) language() (d languageDefaults, ok bool) {
	i := slices.IndexFunc(languageModels, func(d languageDefaults) bool { return d.model == c.Model })
	if i < 0 {
		return d, false
	}
	return languageModels[i], true
}

// Window returns the number of tokens of a window of text: block, or the network's usual number.
func (c Config) Window() int {
	if c.Block > 0 {
		return c.Block
	}
	d, ok := c.language()
	if !ok {
		d = languageModels[0]
	}
	return d.window
}

// Defaults returns the default configuration of the network and the data set that c names. Text
// and language models have the defaults of nanoGPT: AdamW with a cosine schedule by
// iterations, and windows from anywhere. Text without a network is read by gpt-nano, and a language
// model without a data set reads the synthetic text. Others are [Default].
func (c Config) Defaults() Config {
	d := Default()
	named := func(key string) bool { return slices.Contains(c.explicit, key) }
	textual := c.Data == dataText || c.Data == dataSynthText
	of, ok := c.language()
	switch {
	case !ok && (!textual || named("model")):
		return d
	case !ok:
		of = languageModels[0]
	case !textual && !named("data"):
		d.Data = dataSynthText
	}
	d.Model, d.Hidden = of.model, nil
	if textual {
		d.Data = c.Data
	}
	d.DataTrain, d.DataTest = 1_000_000, 100_000
	d.Iterations, d.Batch = of.iterations, of.batch
	d.DecayTensors = "weights"
	if c.LayerLR == "" || named("weight_decay") && c.WeightDecay == 0 { // else nothing can be clipped
		d.ClipNorm = 1
	}
	d.Partition, d.Sampling, d.SampleTokens = "contiguous", "iid", of.sample
	m, _ := c.findMethod()
	c.setLanguageOptimizer(&d, m, of)
	if c.optimizerOf(m).Constant {
		d.MinAlpha, d.WarmupT = 0, 100
	} else if named("schedule") && c.Schedule == scheduleConstant || m.traits.Constant {
		d.MinAlpha = 0
	} else {
		d.Schedule, d.WarmupT = "cosine", 100
	}
	return d
}

// setLanguageOptimizer sets the defaults of the optimizer that c names, or else of the usual one
// where the method takes it and neither momentum nor layer_lr is set, with which it has no effect.
// Optimizers with unit steps have nanoGPT's alpha; others have a larger one.
func (c Config) setLanguageOptimizer(d *Config, m method, of languageDefaults) {
	if c.Optimizer == auto && !slices.Contains(c.explicit, "optimizer") && c.Momentum == 0 && c.LayerLR == "" &&
		m.takes(languageOptimizer) {
		d.Optimizer = languageOptimizer
		c.Optimizer = languageOptimizer
	}
	o := c.optimizerOf(m)
	if reads(o, "beta2") {
		d.Beta2 = of.beta2
	}
	if o.Decoupled {
		d.WeightDecay = 0.1
	}
	switch {
	case o.UnitSteps:
		d.Alpha, d.MinAlpha = of.alpha, of.min
	case m.traits.Gradients > 1:
		d.Alpha, d.MinAlpha = languageAsyncSTORMAlpha, o.LanguageAlpha/10
	default:
		d.Alpha, d.MinAlpha = o.LanguageAlpha, o.LanguageAlpha/10
	}
}

// languageOptimizer is the optimizer of language models, where the method takes it.
const languageOptimizer = "adamw"

// languageAsyncSTORMAlpha is the step size of language models with asynchronous STORM, which has no
// warm-up.
const languageAsyncSTORMAlpha = 0.03

// Made returns the configuration that set makes of [Default], with the [Config.Defaults] of the
// network and the data set that it names.
func Made(set func(c *Config) error) (Config, error) {
	c := Default()
	if err := set(&c); err != nil {
		return c, err
	}
	c = c.Defaults()
	return c, set(&c)
}

// IsText reports whether a data set of this name is text.
func IsText(name string) bool { return strings.TrimPrefix(name, "synthetic-") == dataText }

// checkText checks that network and data set agree on whether examples are windows of text.
func (s *Setup) checkText() error {
	c := s.Config
	var names []string
	for _, d := range languageModels {
		names = append(names, d.model)
	}
	switch {
	case s.Set.Text != nil && s.Window == 0:
		return Invalid("model", c.Model, "it does not read tokens, which is what %s has: use %s", c.Data,
			setting.Either(names))
	case s.Set.Text == nil && s.Window > 0:
		return Invalid("data", c.Data, "%s reads tokens: use data text or synthetic-text", c.Model)
	}
	return nil
}
