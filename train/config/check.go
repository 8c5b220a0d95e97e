package config

import (
	"errors"
	"math"
	"strings"

	"fspda/train/setting"
)

// The values of the key metrics.
const (
	// MetricsFull evaluates objective and gradient over all training data, at each agent's model
	// and at the mean model, and the test set.
	MetricsFull = "full"
	// MetricsTest evaluates the test set. The training loss is that of the agents' batches since
	// the row before.
	MetricsTest = "test"
)

// The values of the key bn: where the mean model, which is never trained, gets the statistics of
// its batch norm.
const (
	BNPooled      = "pooled"      // from the agents' buffers
	BNRecalibrate = "recalibrate" // from forward passes of the mean model over training batches
	BNLocal       = "local"       // from each agent's buffers in turn; the scores are averaged
)

// The values of the key init_head.
const (
	HeadFile = "file"
	HeadNew  = "new"
)

// maxThreads catches typing errors: the scheduler needs memory for each thread.
const maxThreads = 1024

// maxWindows is the number of random windows of a row, of which each takes eight bytes.
const maxWindows = 1 << 20

// maxContacts catches typing errors: the simulation goes through every exchange, and would not end.
const maxContacts = 1e4

// maxSample bounds the tokens of a sample, so that its line in samples.jsonl can be read again.
const maxSample = 1 << 16

// check returns the fault of a value, or nil.
type check func(key string, value any) error

// checks lists the checks of single keys besides choices. Keys that are in neither are checked by
// Resolve, which parses them: graph, edges, mask, partition, mixing, compress, compute_time,
// slowness, links.
var checks = []struct {
	key   string
	check check
}{
	{"freeze", someNames},
	{"layer_lr", func(key string, v any) error { _, err := parseFactors(key, *v.(*string)); return err }},
	{"crop", atLeast(0)},
	{"image_size", atLeast(0)},
	{"model", checkModel},
	{"layers", atLeast(0)},
	{"heads", atLeast(0)},
	{"width", atLeast(0)},
	{"device", checkDevice},
	{"edges", notEmpty},
	{"mask", notEmpty},
	{"compress", notEmpty},
	{"iterations", atLeast(1)},
	{"agents", atLeast(1)},
	{"batch", atLeast(1)},
	{"eval_points", atLeast(1)},
	{"local_steps", atLeast(0)},
	{"eval_agents", atLeast(0)},
	{"eval_test", atLeast(0)},
	{"eval_random", atLeast(0)},
	{"sample_tokens", func(key string, v any) error {
		if n := *v.(*int); n < 0 || n > maxSample {
			return Invalid(key, n, "expected 0, for none, to %d", maxSample)
		}
		return nil
	}},
	{"block", atLeast(0)},
	{"warmup_iterations", atLeast(0)},
	{"decay_iterations", atLeast(0)},
	{"min_alpha", number("0 or more", notNegative)},
	{"bn_batches", atLeast(1)},
	{"keep_checkpoints", atLeast(1)},
	{"accumulate", atLeast(1)},
	{"threads", func(key string, v any) error {
		if n := *v.(*int); n < 0 || n > maxThreads {
			return Invalid(key, n, "expected 0, for all cores, to %d", maxThreads)
		}
		return nil
	}},
	{"alpha", number("a step size above 0", positive)},
	{"eta", number("0 or more, or auto", notNegative)},
	{"beta", number("0 or more", notNegative)},
	{"gamma", number("a finite number", finite)},
	{"theta", number("a finite number, or auto", finite)},
	{"gradient_time", number("0 or more seconds", notNegative)},
	{"give_up", number("above 0 and at most 1e6 seconds", func(v float64) bool { return v > 0 && v <= 1e6 })},
	{"drop_after", number("0, for never, or 1 to 1e9 seconds",
		func(v float64) bool { return v == 0 || v >= 1 && v <= 1e9 })},
	{"c_max", number("a coefficient above 0, or auto", positive)},
	{"contacts", number("0 to 1e4", func(v float64) bool { return v >= 0 && v <= maxContacts })},
	{"a_x", number("above 0 and at most 1: the weight of the newest sample", share)},
	{"a_lambda", number("above 0 and at most 1: the weight of the newest sample", share)},
	{"share", number("above 0 and at most 1: the share c of the averaging step", share)},
	{"outer_step", number("a step size above 0; 1 goes where the local steps went", positive)},
	{"delta", number("above 0 and at most 0.5: W~ lies between W and (I+W)/2",
		func(v float64) bool { return v > 0 && v <= 0.5 })},
	{"kappa", number("at least 0 and below 1", belowOne)},
	{"rho", number("a penalty above 0, or auto", positive)},
	{"beta1", number("at least 0 and below 1", belowOne)},
	{"beta2", number("at least 0 and below 1", belowOne)},
	{"eps", number("a number above 0", positive)},
	{"momentum", number("at least 0 and below 1", belowOne)},
	{"weight_decay", number("0 or more", notNegative)},
	{"clip_norm", number("0, for no limit, or a norm above it", notNegative)},
	{"epochs", number("0, or a number of epochs above it", notNegative)},
	{"eval_epochs", number("0, or a number of epochs above it", notNegative)},
	{"decay", func(key string, v any) error {
		if d := *v.(*string); strings.HasPrefix(d, "by-name(") && strings.HasSuffix(d, ")") {
			return nil // the network says whether it has such tensors
		}
		return oneOf(decayForms()...)(key, v)
	}},
	{"dropout", number("at least 0 and below 1", belowOne)},
	{"label_smoothing", number("at least 0 and below 1", belowOne)},
	{"density", number("above 0 and at most 1: the share of coordinates that an exchange carries", share)},
	{"warmup", number("0 or more epochs", notNegative)},
	{"checkpoint_every", number("0, or 0.001 to 1e9 seconds",
		func(v float64) bool { return v == 0 || v >= 1e-3 && v <= 1e9 })},
}

func positive(v float64) bool    { return v > 0 }
func notNegative(v float64) bool { return v >= 0 }
func belowOne(v float64) bool    { return v >= 0 && v < 1 }
func share(v float64) bool       { return v > 0 && v <= 1 }
func finite(float64) bool        { return true }

// Check refuses values that are wrong whatever the data set and the model. The error lists all of
// them.
func (c Config) Check() error {
	c.FoldNames()
	values := map[string]any{}
	for _, f := range c.Fields() {
		values[f.Key] = f.Value
	}
	var errs []error
	for _, k := range choices {
		errs = append(errs, oneOf(k.names()...)(k.key, values[k.key]))
	}
	for _, k := range checks {
		errs = append(errs, k.check(k.key, values[k.key]))
	}
	errs = append(errs, c.checkParams()...)
	if c.Data == "synthetic" || c.Data == "synthetic-images" || c.Data == "synthetic-text" {
		errs = append(errs, atLeast(10)("data_train", &c.DataTrain), atLeast(10)("data_test", &c.DataTest))
	}
	if c.Batch > 0 && c.EvalRandom > maxWindows/c.Batch {
		errs = append(errs, Invalid("eval_random", c.EvalRandom, "expected at most %d with batch %d: a row draws all "+
			"its windows at once, at most %d", maxWindows/c.Batch, c.Batch, maxWindows))
	}
	if c.ImageColumn+c.LabelColumn != "" && c.Data != "folder" && c.Data != "imagenet" {
		errs = append(errs, Invalid("data", c.Data, "image_column and label_column belong to folder and imagenet"))
	}
	if c.Head == HeadNew && c.Init == "" {
		errs = append(errs, Invalid("init_head", c.Head, "it belongs to init, which names no file: without one all "+
			"weights are drawn from the seed"))
	}
	return errors.Join(errs...)
}

// notEmpty refuses an empty name, which elsewhere stands for a setting without use.
func notEmpty(key string, value any) error {
	if *value.(*string) == "" {
		return Invalid(key, `""`, "expected auto, or one of %s", strings.Join(Choices(key), ", "))
	}
	return nil
}

// oneOf accepts the given names.
func oneOf(names ...string) check {
	return func(key string, value any) error {
		return setting.OneOf(names...)(key, *value.(*string))
	}
}

func atLeast(least int) check {
	return func(key string, value any) error {
		if got := *value.(*int); got < least {
			return Invalid(key, got, "expected at least %d", least)
		}
		return nil
	}
}

// number accepts auto, where the key has it, and finite numbers for which ok returns true. Where ok
// refuses 0, as for step sizes, the number must neither become 0 nor infinite in single precision,
// in which networks train.
func number(want string, ok func(v float64) bool) check {
	return func(key string, value any) error {
		var v float64
		switch p := value.(type) {
		case *AutoFloat:
			if p.Auto {
				return nil
			}
			v = p.V
		case *float64:
			v = *p
		}
		if !ok(v) || math.IsNaN(v) || math.IsInf(v, 0) {
			return Invalid(key, v, "expected %s", want)
		}
		if single := float64(float32(v)); !ok(0) && (single == 0 || math.IsInf(single, 0)) {
			return Invalid(key, v, "it is %g in single precision, in which networks train: expected %s", single, want)
		}
		return nil
	}
}
