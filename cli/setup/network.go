package setup

import (
	"strings"

	"fspda/model"
	"fspda/train"
	"fspda/train/config"
)

// An Engine has what training needs of a model with batch norm.
var _ train.Buffered = (*model.Engine)(nil)

// init tells the configuration the names of the networks, those that a program registers included.
// Only an mlp and language models have hidden layers to choose, and blocks to recompute only
// residual networks and language models.
func init() {
	config.SetModels(func() (names []config.ModelName) {
		for _, name := range model.Names() {
			m := config.ModelName{Name: name, Keys: []string{"recompute"}}
			switch {
			case name == "vgg11":
				m.Keys = []string{"dropout"}
			case model.IsConvNet(name):
				m.Keys = nil
			case name == "mlp":
				m.Keys = []string{"hidden", "activation", "dropout"}
			case model.IsTransformer(name):
				m.Keys = append(m.Keys, "hidden", "layers", "heads", "width", "block")
				if !strings.HasPrefix(name, "llama") {
					m.Keys = append(m.Keys, "gelu", "bias", "dropout")
				}
			}
			names = append(names, m)
		}
		return names
	})
}

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
