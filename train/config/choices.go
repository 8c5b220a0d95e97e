package config

import (
	"slices"
	"strings"

	"fspda/data"
	"fspda/dist"
	"fspda/internal/spelling"
	"fspda/train/algo"
	"fspda/train/simnet"
)

// choices lists the keys whose values are names.
var choices = []struct {
	key   string
	names func() []string
}{
	{"algo", Algorithms},
	{"data", data.Names},
	{"init_head", list(HeadFile, HeadNew)},
	{"augment", data.Augments},
	{"jpeg", data.Decoders},
	{"on_bad", list(string(data.Fail), string(data.Skip))},
	{"activation", list("sigmoid", "relu")},
	{"gelu", list("tanh", "erf")},
	{"storm_start", list("gradient", "zero")},
	{"storm_lambda", list("exact", "lagged")},
	{"dual", list("same-time", "stale-neighbour")},
	{"eta_schedule", list("coupled", "constant")},
	{"weights", list(auto, weightsConstant, weightsMetropolis, weightsProcess)},
	{"order", list("cta", "atc")},
	{"schedule", list("constant", "cosine")},
	{"objective", list("agents", "samples")},
	{"sampling", list(string(data.Epochs), string(data.IID), string(data.Full))},
	{"metrics", list("auto", MetricsFull, MetricsTest)},
	{"bn", list(BNPooled, BNRecalibrate, BNLocal)},
	{"recompute", list("none", "blocks")},
	{"accounting", dist.Accountings},
	{"precision", list("fp32", "tf32", "fp16", "bf16")},
	{"wire", dist.ValueFormats},
	{"norms", list("tensor", "flat")},
	{"swarm", list("nonblocking", "blocking")},
	{"initiator", list("global", "degree")},
	{"reference_bits", list("honest", "published")},
	{"clock", list(ClockVirtual, ClockReal)},
	{"coef", list(string(algo.Inverse), string(algo.One), string(algo.Printed))},
	{"optimizer", func() []string { return append([]string{auto}, Optimizers()...) }},
	{"placement", list("auto", placementLocal, placementCorrected)},
	{"decay_form", list("auto", decayCoupled, decayDecoupled)},
	{"tokenizer", func() []string { return append([]string{"auto"}, data.Tokenizers()...) }},
}

// forms lists the keys whose values are names, some of which have an argument in brackets.
var forms = map[string]func() []string{
	"graph":        func() []string { return dist.Forms("graph") },
	"edges":        func() []string { return append([]string{"auto"}, dist.Forms("edges")...) },
	"mask":         func() []string { return dist.Forms("mask") },
	"mixing":       func() []string { return dist.Forms("mixing") },
	"compress":     func() []string { return append([]string{"auto"}, dist.Forms("compress")...) },
	"partition":    data.PartitionForms,
	"compute_time": simnet.Distributions,
	"slowness":     simnet.Slownesses,
	"decay":        decayForms,
	"device":       list("auto", "cpu", "cuda", "cuda:0"),
	"model":        modelList,
}

func list(names ...string) func() []string { return func() []string { return names } }

func decayForms() []string { return []string{"all", "weights", "no-norm", "by-name(PATTERN,...)"} }

func modelList() (names []string) {
	for _, m := range modelNames() {
		names = append(names, m.Name)
	}
	return names
}

// Choices lists the values of a key that are names, with their arguments as in er(p); nil for other
// keys.
func Choices(key string) []string {
	if f := forms[key]; f != nil {
		return f()
	}
	for _, k := range choices {
		if k.key == key {
			return k.names()
		}
	}
	return nil
}

// FoldNames spells the names among the values as their tables do: algo DSGD becomes dsgd, and graph
// ER(0.5) becomes er(0.5). Parse and Resolve call it.
func (c *Config) FoldNames() {
	for _, f := range c.Fields() {
		if v, ok := f.Value.(*string); ok {
			*v = foldName(*v, Choices(f.Key))
		}
	}
}

func foldName(value string, choices []string) string {
	name := spelling.Name(value)
	same := func(equal func(a, b string) bool) int {
		return slices.IndexFunc(choices, func(form string) bool { return equal(spelling.Name(form), name) })
	}
	at := same(strings.EqualFold)
	switch {
	case at < 0 || same(func(a, b string) bool { return a == b }) >= 0:
		return value
	case strings.Contains(value, "("):
		return spelling.Name(choices[at]) + strings.TrimSpace(value[strings.Index(value, "("):])
	}
	return choices[at]
}

// aliases are names that other programs give to keys.
var aliases = map[string]string{"lr": "alpha", "learning_rate": "alpha", "workers": "agents", "nodes": "agents",
	"world_size": "agents", "topology": "graph", "dataset": "data", "batch_size": "batch", "algorithm": "algo"}

// Alias returns the key that another program calls by a name, or "".
func Alias(name string) string { return aliases[strings.ReplaceAll(name, "-", "_")] }
