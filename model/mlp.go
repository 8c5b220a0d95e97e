package model

import (
	"cmp"
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// maxWidth is the widest layer: class indices are passed as float32, which is exact below it.
const maxWidth = 1 << 24

// maxLayers is the largest number of layers. The time to build a graph grows faster than their
// number: at this limit it is 5 s for an MLP, and more than a minute for a transformer.
const maxLayers = 1024

// activations maps names to the hidden activations.
var activations = map[string]device.Kernel{
	"sigmoid": device.Sigmoid,
	"relu":    device.ReLU,
}

// MLPOptions describes a multilayer perceptron.
type MLPOptions struct {
	Inputs      int     // numbers per example
	Classes     int     // number of classes, at least 2
	Hidden      []int   // widths of the hidden layers; none makes the network linear
	Activation  string  // after each hidden layer: "sigmoid", the default, or "relu"
	WeightDecay float64 // adds WeightDecay/2·Σw² over all weights and biases to the loss

	Dropout        float64 // share of the numbers that training drops after each activation
	Decay          Decay   // see LossOptions
	LabelSmoothing float64 // see LossOptions
}

func (o MLPOptions) loss() LossOptions { return LossOptions{o.WeightDecay, o.Decay, o.LabelSmoothing} }

// MLP returns a network of dense layers fc1, fc2, ... with the activation between them and none
// after the last. The flat order of its parameters is fc1.weight (row-major, outputs × inputs),
// fc1.bias, fc2.weight, and so on. The network of the paper's MNIST experiments is 784-100-10 with
// sigmoid: 79,510 parameters.
func MLP(o MLPOptions) (*Network, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("model: mlp: %w", err)
	}
	o.Activation = cmp.Or(o.Activation, "sigmoid")
	o.Hidden = append([]int(nil), o.Hidden...) // the network must not share the caller's slice
	return newNetwork(Network{name: o.name(), inputs: o.Inputs, classes: o.Classes, loss: o.loss(), forward: o.forward})
}

func (o MLPOptions) validate() error {
	if o.Inputs < 1 || o.Inputs > maxWidth {
		return fmt.Errorf("option Inputs is %d, want 1 to %d: the number of features of an example", o.Inputs, maxWidth)
	}
	if o.Classes < 2 || o.Classes > maxWidth {
		return fmt.Errorf("option Classes is %d, want 2 to %d", o.Classes, maxWidth)
	}
	if n := len(o.Hidden); n > maxLayers {
		return fmt.Errorf("option Hidden has %d layers, want at most %d", n, maxLayers)
	}
	for i, h := range o.Hidden {
		if h < 1 || h > maxWidth {
			return fmt.Errorf("option Hidden[%d] is %d, want a width of 1 to %d", i, h, maxWidth)
		}
	}
	if _, ok := activations[o.Activation]; !ok && o.Activation != "" {
		return fmt.Errorf("option Activation is %q, want sigmoid or relu", o.Activation)
	}
	if o.Dropout > 0 && len(o.Hidden) == 0 {
		return fmt.Errorf("option Dropout is %v, but there is no hidden layer: remove it", o.Dropout)
	}
	if err := checkDropout(o.Dropout); err != nil {
		return err
	}
	return o.loss().validate()
}

func (o MLPOptions) name() string {
	var s strings.Builder
	fmt.Fprintf(&s, "mlp %d", o.Inputs)
	for _, h := range o.Hidden {
		fmt.Fprintf(&s, "-%d", h)
	}
	fmt.Fprintf(&s, "-%d", o.Classes)
	if len(o.Hidden) > 0 {
		s.WriteString(" " + o.Activation)
	}
	return s.String()
}

func (o MLPOptions) forward(b *builder, x *gorgonia.Node) *gorgonia.Node {
	for i, h := range o.Hidden {
		x = b.linear(fmt.Sprintf("fc%d", i+1), x, h)
		x = b.activation(fmt.Sprintf("act%d", i+1), activations[o.Activation], x)
		x = b.dropout(fmt.Sprintf("drop%d", i+1), o.Dropout, x)
	}
	return b.linear(fmt.Sprintf("fc%d", len(o.Hidden)+1), x, o.Classes)
}
