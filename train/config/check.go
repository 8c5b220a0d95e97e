package config

import (
	"errors"
	"strings"

	"fspda/train/setting"
)

// The values of the key metrics.
const (
	// MetricsFull evaluates objective and gradient over all training data, at each agent's model
	// and at the mean model, and the test set.
	MetricsFull = "full"
	// MetricsTest evaluates the test set. The training loss is the mean over the agents' batches
	// since the previous row.
	MetricsTest = "test"
)

// The values of the key bn: where the mean model, which is never trained, gets the statistics of
// its batch norm.
const (
	BNPooled      = "pooled"      // The agents' buffers are pooled.
	BNRecalibrate = "recalibrate" // The mean model measures them in forward passes over training batches.
	BNLocal       = "local"       // Each agent's buffers are used in turn, and the scores averaged.
)

// The values of the key init_head.
const (
	HeadFile = "file"
	HeadNew  = "new"
)

// maxWindows is the number of random windows of a row, of which each takes eight bytes.
const maxWindows = 1 << 20

// Check refuses values that are wrong whatever the data set and the model. The error lists all of
// them.
func (c Config) Check() error {
	c.FoldNames()
	var errs []error
	for _, f := range c.fields() {
		if f.Refuse(f.Name, f.get()) != nil {
			f.Help = helpWords()(f.Name, f.Help)
			errs = append(errs, f.Refuse(f.Name, f.get()))
		}
	}
	errs = append(errs, c.checkParams()...)
	if c.Data == "synthetic" || c.Data == "synthetic-images" || c.Data == "synthetic-text" {
		errs = append(errs, atLeast10("data_train", c.DataTrain), atLeast10("data_test", c.DataTest))
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

func atLeast10(key string, value int) error {
	if value < 10 {
		return Invalid(key, value, "expected at least 10")
	}
	return nil
}

// notEmpty refuses an empty name, which elsewhere stands for a setting without use.
func notEmpty(key string, value any) error {
	if value.(string) == "" {
		return Invalid(key, `""`, "expected auto, or one of %s", strings.Join(Choices(key), ", "))
	}
	return nil
}

// checkDecay accepts a rule, or patterns: the network says whether it has such tensors.
func checkDecay(key string, value any) error {
	if d := value.(string); strings.HasPrefix(d, "by-name(") && strings.HasSuffix(d, ")") {
		return nil
	}
	return setting.OneOf(Choices(key)...)(key, value)
}

// zeroOr accepts 0, and numbers from the least one on.
func zeroOr(least float64) func(string, any) error {
	return func(key string, value any) error {
		if v := value.(float64); v != 0 && v < least {
			k, _ := Lookup(key)
			return Invalid(key, v, "expected %s", k.Want)
		}
		return nil
	}
}
