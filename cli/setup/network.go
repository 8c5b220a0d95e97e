package setup

import (
	"strings"

	"fspda/model"
	"fspda/train"
	"fspda/train/config"
)

// An Engine has the methods that training needs of a model with batch norm.
var _ train.Buffered = (*model.Engine)(nil)

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

// OpenModel returns the network that c names, for examples of the given shape.
func OpenModel(c train.Config, shape []int, classes int) (*model.Network, error) {
	of, err := c.Network()
	if err != nil {
		return nil, err
	}
	o := model.Options{Shape: shape, Classes: classes, Loss: model.LossOptions{WeightDecay: of.L2(),
		Decay: model.Decay(of.DecayTensors), LabelSmoothing: of.Smoothing}, Dropout: c.Dropout,
		Recompute: model.Recompute(c.Recompute)}
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
	var factors []model.Factor
	for _, f := range of.Factors() {
		factors = append(factors, model.Factor(f))
	}
	if net, err = net.WithFactors(of.Frozen(), factors); err != nil {
		return nil, &train.ConfigError{Key: "freeze or layer_lr", Err: err}
	}
	return net, nil
}
