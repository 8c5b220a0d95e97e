package setup

import (
	"fmt"
	"slices"
	"strings"

	"fspda/model"
	"fspda/train"
)

// An Engine has what training needs of a model with batch norm.
var _ train.Buffered = (*model.Engine)(nil)

// checkModel checks the name of the network, and that keys which it ignores have their defaults.
func checkModel(c train.Config) error {
	names := model.Names()
	if !slices.Contains(names, c.Model) {
		hint := "expected " + strings.Join(names, ", ")
		if near := train.Nearest(c.Model, names); near != "" {
			hint = fmt.Sprintf("did you mean %s? %s", near, hint)
		}
		return &train.ConfigError{Key: "model", Got: fmt.Sprintf("%q", c.Model), Want: hint}
	}
	if c.Model == "mlp" {
		return nil
	}
	// A key with its default value may not have been given at all.
	usual, want := train.Default(), fmt.Sprintf("only mlp has this setting: leave it out, or use mlp in place of %s",
		c.Model)
	if !slices.Equal(c.Hidden, usual.Hidden) {
		return &train.ConfigError{Key: "hidden", Got: c.Hidden.String(), Want: want}
	}
	if c.Activation != usual.Activation {
		return &train.ConfigError{Key: "activation", Got: c.Activation, Want: want}
	}
	return nil
}

// OpenModel returns the network that c names, for examples of the given shape.
func OpenModel(c train.Config, shape []int, classes int) (*model.Network, error) {
	if err := checkModel(c); err != nil {
		return nil, err
	}
	o := model.Options{Shape: shape, Classes: classes, Loss: model.LossOptions{WeightDecay: c.Decay,
		Decay: model.Decay(c.Decays), LabelSmoothing: c.Smoothing}, Recompute: model.Recompute(c.Recompute)}
	if c.Model == "mlp" {
		o.Hidden, o.Activation = c.Hidden, c.Activation
	}
	net, err := model.Open(c.Model, o)
	if err != nil {
		return nil, &train.ConfigError{Key: "model", Got: c.Model, Err: err}
	}
	return net, nil
}
