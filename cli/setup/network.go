package setup

import (
	"fspda/model"
	"fspda/train"
	"fspda/train/config"
)

// An Engine has what training needs of a model with batch norm.
var _ train.Buffered = (*model.Engine)(nil)

// init tells the configuration the names of the networks, those that a program registers included.
// Only an mlp has hidden layers to choose, and blocks to recompute only the others.
func init() {
	config.SetModels(func() (names []config.ModelName) {
		for _, name := range model.Names() {
			m := config.ModelName{Name: name, Keys: []string{"recompute"}}
			if name == "mlp" {
				m.Keys = []string{"hidden", "activation"}
			}
			names = append(names, m)
		}
		return names
	})
}

// OpenModel returns the network that c names, for examples of the given shape.
func OpenModel(c train.Config, shape []int, classes int) (*model.Network, error) {
	o := model.Options{Shape: shape, Classes: classes, Loss: model.LossOptions{WeightDecay: c.L2(),
		Decay: model.Decay(c.Decays), LabelSmoothing: c.Smoothing}, Recompute: model.Recompute(c.Recompute)}
	if c.Model == "mlp" {
		o.Hidden, o.Activation = c.Hidden, c.Activation
	}
	net, err := model.Open(c.Model, o)
	if err != nil {
		return nil, &train.ConfigError{Key: "model", Got: c.Model, Err: err}
	}
	var factors []model.Factor
	for _, f := range c.Factors() {
		factors = append(factors, model.Factor(f))
	}
	if net, err = net.WithFactors(c.Frozen(), factors); err != nil {
		return nil, &train.ConfigError{Key: "freeze or layer_lr", Err: err}
	}
	return net, nil
}
