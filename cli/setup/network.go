package setup

import (
	"strings"

	"fspda/data"
	"fspda/device"
	"fspda/model"
	"fspda/model/external"
	"fspda/train"
	"fspda/train/config"
)

// Model is a network on a device: a [model.Engine], or an [external.Engine] that another program
// computes.
type Model interface {
	train.Model
	// Name describes the network: "mlp 784-100-10 sigmoid".
	Name() string
	// Inputs is the number of features of an example.
	Inputs() int
	// Classes is the number of classes, or of tokens.
	Classes() int
	// Tokens reports whether an example is a window of tokens, each of which predicts the next.
	Tokens() bool
	// Predict writes the logits of the batch at x, with the buffers as the statistics of batch norm,
	// to out: N × Classes numbers.
	Predict(out []float64, x, buffers device.Vector, b device.Batch) error
	// StartFrom makes Init and InitBuffers return these vectors.
	StartFrom(x, buffers []float32)
}

var (
	_ Model = (*model.Engine)(nil)
	_ Model = (*external.Engine)(nil)
)

// Transformer returns the sizes of the language model that c names, as far as it says them.
func Transformer(c train.Config) model.Transformer {
	t := model.Transformer{Layers: c.Layers, Heads: c.Heads, Width: c.Width, Block: c.Block}
	if !strings.HasPrefix(c.Model, "llama") {
		t.GELU, t.NoBias = c.GELU, !c.Bias
	}
	if len(c.Hidden) > 0 {
		t.Hidden = c.Hidden[0]
	}
	return t
}

// OpenEngine returns the network that c names for the examples of a set, and runs it on a device.
func OpenEngine(c train.Config, set *data.Set, dev device.Device) (*model.Network, Model, error) {
	e := examplesOf(set)
	net, d, err := openNetwork(c, e)
	switch {
	case err != nil:
		return nil, nil, err
	case c.Model == model.ExternalName:
		m, err := externalEngine(c, net, d, e, dev)
		return net, m, err
	}
	return net, model.NewEngine(net, dev), nil
}

func examplesOf(set *data.Set) external.Examples {
	e := external.Examples{Shape: set.Shape, Classes: set.Classes, Tokens: set.Text != nil}
	if set.Name == model.ExternalName {
		e.Test = set.Test.Key()
	}
	return e
}

// OpenModel returns the network that c names, for examples of the given shape.
func OpenModel(c train.Config, shape []int, classes int) (*model.Network, error) {
	e := external.Examples{Shape: shape, Classes: classes, Tokens: config.IsText(c.Data)}
	if c.Data == model.ExternalName {
		e.Test = new(device.CacheKey) // the program loads the examples
	}
	net, _, err := openNetwork(c, e)
	return net, err
}

// openNetwork returns the network that c names, for examples, and the description of an external
// one.
func openNetwork(c train.Config, e external.Examples) (_ *model.Network, d external.Description, err error) {
	if c.Model == model.ExternalName {
		if d, err = programOf(c).Ask(e); err != nil {
			return nil, d, &train.ConfigError{Key: "command", Got: c.Command, Err: err}
		}
	}
	net, err := makeNetwork(c, e.Shape, e.Classes, d.External)
	return net, d, err
}

// makeNetwork makes a network, and an external one as it was described.
func makeNetwork(c train.Config, shape []int, classes int, described model.External) (*model.Network, error) {
	of, err := c.Network()
	if err != nil {
		return nil, err
	}
	o := model.Options{Shape: shape, Classes: classes, Loss: model.LossOptions{WeightDecay: of.L2(),
		Decay: model.Decay(of.DecayTensors), LabelSmoothing: of.Smoothing}, Dropout: c.Dropout,
		Recompute: model.Recompute(c.Recompute), External: described}
	switch {
	case c.Model == "mlp":
		o.Hidden, o.Activation = c.Hidden, c.Activation
	case model.IsTransformer(c.Model):
		if len(c.Hidden) > 1 {
			return nil, config.Invalid("hidden", c.Hidden, "all feed-forward layers of %s have one width: give one",
				c.Model)
		}
		o.Transformer = Transformer(c)
	}
	net, err := model.Open(c.Model, o)
	if err != nil {
		return nil, &train.ConfigError{Key: "model", Got: c.Model, Err: err}
	}
	if c.Mixup > 0 || c.Cutmix > 0 {
		if net, err = net.WithMixed(); err != nil {
			return nil, &train.ConfigError{Key: "mixup or cutmix", Err: err}
		}
	}
	var factors []model.Factor
	for _, f := range of.Factors() {
		factors = append(factors, model.Factor(f))
	}
	if net, err = net.WithFactors(of.Frozen(), factors); err != nil {
		return nil, &train.ConfigError{Key: "freeze or layer_lr", Err: err}
	}
	return net, nil
}
