package model

import (
	"cmp"
	"fmt"
	"slices"
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

	External External // external: see External
}

// Named is a network that [Open] knows by its name.
type Named struct {
	Name string
	// Keys lists the keys of a configuration that only some networks read and this one does, such as
	// hidden. Settings of other networks are refused if they are set.
	Keys []string
	Open func(Options) (*Network, error)
}

// Networks lists the networks known to Open.
func Networks() []Named { return slices.Concat(own(), registered) }

// Names lists the names of the networks known to Open.
func Names() (names []string) {
	for _, k := range Networks() {
		names = append(names, k.Name)
	}
	return names
}

// own lists the networks of this package.
var own = sync.OnceValue(func() []Named {
	all := []Named{{"mlp", []string{"hidden", "activation", "dropout"}, openMLP}}
	for _, norm := range []string{"", "gn", "evonorm"} {
		for _, d := range resNetDepths() {
			all = append(all, namedResNet(d, norm))
		}
	}
	all = append(all, Named{"gn-lenet", nil, convNet("gn-lenet", GNLeNet)},
		Named{"vgg11", []string{"dropout"}, convNet("vgg11", VGG11)})
	for _, name := range TransformerNames() {
		all = append(all, namedTransformer(name))
	}
	return append(all, Named{ExternalName, []string{"block"}, openExternal})
})

// Open returns the network of that name: "mlp", or one of the residual networks "resnet18", 34, 50,
// 101 and 152 for large images and "resnet20", 32, 44 and 56 for small ones, each also with "-gn"
// for group norm and "-evonorm" for EvoNorm-S0; "gn-lenet", "vgg11", a language model, or
// "external". See [MLP], [ResNet], [GNLeNet], [VGG11], [Transformer] and [External]. [Register]
// adds others.
func Open(name string, o Options) (*Network, error) {
	all := Networks()
	if at := slices.IndexFunc(all, func(k Named) bool { return k.Name == name }); at >= 0 {
		if name != ExternalName && !o.External.empty() {
			return nil, fmt.Errorf("model: %s: option External is only for %s: remove it", name, ExternalName)
		}
		return all[at].Open(o)
	}
	return nil, fmt.Errorf("model: there is no network %q, want one of %s", name, strings.Join(Names(), ", "))
}

// refuseTransformer refuses the options of language models for another network.
func (o Options) refuseTransformer(name string) error {
	if o.Transformer != (Transformer{}) {
		return fmt.Errorf("model: %s: option Transformer is %+v, which only language models support: remove it", name,
			o.Transformer)
	}
	return nil
}

// refuseRecompute refuses blocks to recompute for a network that has none.
func (o Options) refuseRecompute(name string) error {
	if o.Recompute != "" && o.Recompute != RecomputeNone {
		return fmt.Errorf("model: %s: option Recompute is %q, but %[1]s has no residual blocks: remove it", name,
			o.Recompute)
	}
	return nil
}

func openMLP(o Options) (*Network, error) {
	if err := cmp.Or(o.refuseTransformer("mlp"), o.refuseRecompute("mlp")); err != nil {
		return nil, err
	}
	inputs := 1
	for _, d := range o.Shape {
		inputs *= d
	}
	return MLP(MLPOptions{Inputs: inputs, Classes: o.Classes, Hidden: o.Hidden, Activation: o.Activation,
		Dropout:     o.Dropout,
		WeightDecay: o.Loss.WeightDecay, Decay: o.Loss.Decay, LabelSmoothing: o.Loss.LabelSmoothing})
}

// convNet opens a convolutional network without residual sums.
func convNet(name string, open func(ConvNetOptions) (*Network, error)) func(Options) (*Network, error) {
	return func(o Options) (*Network, error) {
		c, err := o.images(name)
		if err = cmp.Or(err, o.refuseRecompute(name)); err != nil {
			return nil, err
		}
		return open(c)
	}
}

// namedResNet is a residual network of a depth and a norm; "" is batch norm.
func namedResNet(depth int, norm string) Named {
	name := fmt.Sprintf("resnet%d", depth)
	if norm != "" {
		name += "-" + norm
	}
	return Named{name, []string{"recompute"}, func(o Options) (*Network, error) {
		c, err := o.images(name)
		if err != nil {
			return nil, err
		}
		if o.Dropout != 0 {
			return nil, fmt.Errorf("model: %s: option Dropout is %v, but residual networks have none: remove it", name,
				o.Dropout)
		}
		return ResNet(ResNetOptions{Depth: depth, Norm: norm, Classes: o.Classes, Height: c.Height, Width: c.Width,
			Channels: c.Channels, WeightDecay: o.Loss.WeightDecay, Decay: o.Loss.Decay,
			LabelSmoothing: o.Loss.LabelSmoothing, Recompute: o.Recompute})
	}}
}

// namedTransformer is a named language model.
func namedTransformer(name string) Named {
	keys := []string{"recompute", "hidden", "layers", "heads", "width", "block"}
	if !isLlama(name) {
		keys = append(keys, "gelu", "bias", "dropout")
	}
	return Named{name, keys, func(o Options) (*Network, error) { return openTransformer(name, o) }}
}

// images returns the options of a network of images, or an error for options that belong to others.
func (o Options) images(name string) (ConvNetOptions, error) {
	if err := o.refuseTransformer(name); err != nil {
		return ConvNetOptions{}, err
	}
	c, err := o.pictures()
	if err != nil {
		err = fmt.Errorf("model: %s: %w", name, err)
	}
	return c, err
}

// pictures is images for options without a transformer, with errors that do not name the network.
func (o Options) pictures() (ConvNetOptions, error) {
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
