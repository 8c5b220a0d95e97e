package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Options configures a network. Options that a network does not use must be zero.
type Options struct {
	// of an example: height and width, or height, width and channels; any shape for mlp
	Shape   []int
	Classes int // number of classes, at least 2
	Loss    LossOptions

	Hidden     []int  // mlp: widths of the hidden layers; none makes it linear
	Activation string // mlp: after each hidden layer: "sigmoid", the default, or "relu"

	Dropout float64 // mlp, vgg11, gpt: share of the numbers that training drops, at least 0 and below 1

	Recompute Recompute // residual networks and language models: see Recompute

	Transformer Transformer // language models, whose Classes is the number of tokens
}

// Names lists the networks known to Open.
func Names() []string {
	names := slices.Clone(ownNames())
	for _, r := range registered {
		names = append(names, r.name)
	}
	return names
}

// ownNames lists the networks of this package.
var ownNames = sync.OnceValue(func() []string {
	names := []string{"mlp"}
	for _, norm := range []string{"", "-gn", "-evonorm"} {
		for _, d := range resNetDepths() {
			names = append(names, fmt.Sprintf("resnet%d%s", d, norm))
		}
	}
	for _, n := range convNets {
		names = append(names, n.name)
	}
	return append(names, TransformerNames()...)
})

// Open returns the network of that name: "mlp", or one of the residual networks "resnet18", 34, 50,
// 101 and 152 for large images and "resnet20", 32, 44 and 56 for small ones, each also with "-gn"
// for group norm and "-evonorm" for EvoNorm-S0; "gn-lenet", "vgg11", or a language model. See
// [MLP], [ResNet], [GNLeNet], [VGG11] and [Transformer]. [Register] adds others.
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
		return nil, fmt.Errorf("model: %s: option Transformer is %+v, which only language models support: remove it",
			name, o.Transformer)
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
			Dropout:     o.Dropout,
			WeightDecay: o.Loss.WeightDecay, Decay: o.Loss.Decay, LabelSmoothing: o.Loss.LabelSmoothing})
	}
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("model: there is no network %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	c, err := o.images()
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", name, err)
	}
	for _, n := range convNets {
		if n.name != name {
			continue
		}
		if o.Recompute != "" && o.Recompute != RecomputeNone {
			return nil, fmt.Errorf("model: %s: option Recompute is %q, but %s has no residual blocks: remove it", name,
				o.Recompute, name)
		}
		return n.open(c)
	}
	if o.Dropout != 0 {
		return nil, fmt.Errorf("model: %s: option Dropout is %v, but residual networks have none: remove it", name,
			o.Dropout)
	}
	text, norm, _ := strings.Cut(strings.TrimPrefix(name, "resnet"), "-")
	depth, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("model: %s: reading the depth: %w", name, err)
	}
	return ResNet(ResNetOptions{Depth: depth, Norm: norm, Classes: o.Classes, Height: c.Height, Width: c.Width,
		Channels: c.Channels, WeightDecay: o.Loss.WeightDecay, Decay: o.Loss.Decay,
		LabelSmoothing: o.Loss.LabelSmoothing, Recompute: o.Recompute})
}

// images returns the options of a network of images, or an error for options that belong to others.
func (o Options) images() (ConvNetOptions, error) {
	c := ConvNetOptions{Classes: o.Classes, Loss: o.Loss, Dropout: o.Dropout}
	switch {
	case len(o.Hidden) > 0:
		return c, fmt.Errorf("option Hidden is %v, which only mlp supports: remove it", o.Hidden)
	case o.Activation != "" && o.Activation != "relu":
		return c, fmt.Errorf("option Activation is %q, which only mlp supports: remove it", o.Activation)
	case len(o.Shape) == 2:
		c.Channels = 1
	case len(o.Shape) == 3:
		if c.Channels = o.Shape[2]; c.Channels < 1 {
			return c, fmt.Errorf("an example has the shape %v, want at least 1 channel", o.Shape)
		}
	default:
		return c, fmt.Errorf("an example has the shape %v, want height and width, or height, width and "+
			"channels: choose a data set of images", o.Shape)
	}
	c.Height, c.Width = o.Shape[0], o.Shape[1]
	return c, nil
}
