package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options configures a network. Options that a network does not use must be zero.
type Options struct {
	// of an example: height and width, or height, width and channels; any shape for mlp
	Shape   []int
	Classes int // at least 2
	Loss    LossOptions

	Hidden     []int  // mlp: widths of the hidden layers; none makes it linear
	Activation string // mlp: after each hidden layer: "sigmoid", the default, or "relu"

	Recompute Recompute // residual networks and language models: see Recompute

	Transformer Transformer // language models, whose Classes is the number of tokens
}

// Names lists the networks known to Open.
func Names() []string {
	names := []string{"mlp"}
	for _, d := range resNetDepths() {
		names = append(names, fmt.Sprintf("resnet%d", d))
	}
	names = append(names, TransformerNames()...)
	for _, r := range registered {
		names = append(names, r.name)
	}
	return names
}

// Open returns the network of that name: "mlp", or one of the residual networks "resnet18", 34, 50,
// 101 and 152 for large images and "resnet20", 32, 44 and 56 for small ones. See [MLP] and
// [ResNet]. [Register] adds others.
func Open(name string, o Options) (*Network, error) {
	for _, r := range registered {
		if r.name == name {
			return r.open(o)
		}
	}
	if _, ok := NamedTransformer(name, o.Transformer); ok {
		return openTransformer(name, o)
	}
	if o.Transformer != (Transformer{}) {
		return nil, fmt.Errorf(
			"model: %s: option Transformer is %+v, which only language models support: remove it",
			name,
			o.Transformer,
		)
	}
	if name == "mlp" {
		if o.Recompute != "" && o.Recompute != RecomputeNone {
			return nil, fmt.Errorf("model: mlp: option Recompute is %q, but mlp has no residual blocks: remove it",
				o.Recompute)
		}
		inputs := 1
		for _, d := range o.Shape {
			inputs *= d
		}
		return MLP(MLPOptions{Inputs: inputs, Classes: o.Classes, Hidden: o.Hidden, Activation: o.Activation,
			WeightDecay: o.Loss.WeightDecay, Decay: o.Loss.Decay, LabelSmoothing: o.Loss.LabelSmoothing})
	}
	text, ok := strings.CutPrefix(name, "resnet")
	depth, err := strconv.Atoi(text)
	if !ok || err != nil || !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("model: there is no network %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	r := ResNetOptions{Depth: depth, Classes: o.Classes, WeightDecay: o.Loss.WeightDecay,
		Decay: o.Loss.Decay, LabelSmoothing: o.Loss.LabelSmoothing, Recompute: o.Recompute}
	switch {
	case len(o.Hidden) > 0:
		return nil, fmt.Errorf("model: %s: option Hidden is %v, which only mlp supports: remove it", name, o.Hidden)
	case o.Activation != "" && o.Activation != "relu":
		return nil, fmt.Errorf("model: %s: option Activation is %q, which only mlp supports: remove it", name,
			o.Activation)
	case len(o.Shape) == 2:
		r.Channels = 1
	case len(o.Shape) == 3:
		if r.Channels = o.Shape[2]; r.Channels < 1 {
			return nil, fmt.Errorf("model: %s: an example has the shape %v, want at least 1 channel", name, o.Shape)
		}
	default:
		return nil, fmt.Errorf("model: %s: an example has the shape %v, want height and width, or height, width and "+
			"channels: choose a data set of images", name, o.Shape)
	}
	r.Height, r.Width = o.Shape[0], o.Shape[1]
	return ResNet(r)
}
