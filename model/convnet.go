package model

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// ConvNetOptions describes a convolutional network without residual sums.
type ConvNetOptions struct {
	Height, Width, Channels int     // size of an image; Channels 0 means 3
	Classes                 int     // number of classes, at least 2
	Dropout                 float64 // vgg11: share of the numbers that training drops before each hidden dense layer
	Loss                    LossOptions
}

// validate checks the options and sets the default of Channels.
func (o *ConvNetOptions) validate() error {
	r := ResNetOptions{Height: o.Height, Width: o.Width, Channels: max(o.Channels, 0), Classes: o.Classes, BaseWidth: 1,
		WeightDecay: o.Loss.WeightDecay, Decay: o.Loss.Decay, LabelSmoothing: o.Loss.LabelSmoothing}
	if o.Channels == 0 {
		r.Channels = 3
	}
	o.Channels = r.Channels
	if err := checkDropout(o.Dropout); err != nil {
		return err
	}
	return r.validate()
}

func (o ConvNetOptions) network(name string, forward func(b *builder, x *gorgonia.Node) *gorgonia.Node) (*Network,
	error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("model: %s: %w", name, err)
	}
	return newNetwork(Network{name: fmt.Sprintf("%s %d×%d×%d to %d", name, o.Height, o.Width, o.Channels, o.Classes),
		inputs: o.Height * o.Width * o.Channels, image: []int{o.Height, o.Width, o.Channels}, classes: o.Classes,
		loss: o.Loss, forward: forward})
}

// GNLeNet returns the network GN-LeNet of Hsieh et al., "The non-IID data quagmire of decentralized
// machine learning" (2020), in the form of the program decentralizepy, with which the literature on
// decentralized learning compares on CIFAR-10: three 5×5 convolutions of 32, 32 and 64 channels,
// each followed by group norm of two groups, a ReLU and max-pooling of 2×2 pixels, and a dense
// layer over all pixels. For 32×32×3 and 10 classes it has 89,834 parameters in 14 tensors. (The
// original program pools with windows of 3×3, once before the norm and twice by means, and has no
// biases.)
//
// Tensors have the names of that program: conv1.weight, conv1.bias, gn1.weight, gn1.bias, ...,
// fc1.weight and fc1.bias. The dense layer is a filter of the size of its image, whose numbers are
// in files in PyTorch's order. Filters and biases start uniform in ±1/√fan-in.
func GNLeNet(o ConvNetOptions) (*Network, error) {
	if o.Dropout != 0 {
		return nil, fmt.Errorf("model: gn-lenet: option Dropout is %v, but the network has none: remove it", o.Dropout)
	}
	return o.network("gn-lenet", func(b *builder, x *gorgonia.Node) *gorgonia.Node {
		for i, channels := range []int{32, 32, 64} {
			conv := b.newBiasConv(fmt.Sprintf("conv%d", i+1), x.Shape()[3], channels, 5, start{}, start{})
			norm := b.groupNorm(fmt.Sprintf("gn%d", i+1), channels, 2, thenReLU)
			x = b.halve(fmt.Sprintf("pool%d", i+1), norm(b.biased(conv, device.AddBias, x)))
		}
		return b.denseOver("fc1", x, o.Classes)
	})
}

// denseOver adds a dense layer over all pixels of an image: n×h×w×c to n×classes. Its weight is a
// filter of the size of the image.
func (b *builder) denseOver(name string, x *gorgonia.Node, classes int) *gorgonia.Node {
	s := x.Shape()
	l := b.newConvOf(name, s[3], classes, s[1], s[2], 1, start{})
	bias := b.paramOf(Tensor{Name: name + ".bias", Shape: []int{classes}, FanIn: s[1] * s[2] * s[3]})
	b.layer = name
	x = b.apply(device.AddBias, 0, b.applyWindow(device.Conv, geometry{stride: 1}, x, l.weight), bias)
	return b.applyWindow(device.AvgPool, geometry{}, x) // the window is one pixel
}

// vgg11 is configuration A of Simonyan and Zisserman, "Very deep convolutional networks for
// large-scale image recognition": channels of 3×3 convolutions, 0 for max-pooling.
var vgg11 = []int{64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}

// vggHidden is the width of the hidden dense layers.
const vggHidden = 512

// VGG11 returns the network VGG-11 without batch norm, in the form for CIFAR-10 of the program of
// RelaySum for decentralized deep learning (Vogels et al., 2021): the convolutions of configuration
// A of Simonyan and Zisserman, with biases and ReLU, and dense layers of 512, 512 and the classes.
// For 32×32×3 and 10 classes it has 9,750,922 parameters in 22 tensors. Images of another size are
// averaged over the pixels that remain before the dense layers. That program trains with Dropout
// 0.5.
//
// Tensors have the names of that program, which are torchvision's: features.0.weight,
// features.0.bias, ..., classifier.1.weight and so on. Filters start normal with variance
// 2/(9·outputs) and their biases 0, dense layers uniform in ±1/√fan-in.
func VGG11(o ConvNetOptions) (*Network, error) {
	return o.network("vgg11", func(b *builder, x *gorgonia.Node) *gorgonia.Node {
		layer := 0 // numbered as in a list of convolutions, activations and poolings
		for _, channels := range vgg11 {
			name := fmt.Sprintf("features.%d", layer)
			if channels == 0 {
				x = b.halve(name, x)
				layer++
				continue
			}
			conv := b.newBiasConv(name, x.Shape()[3], channels, 3, fanOut(3, channels), start{rule: constant})
			x = b.biased(conv, device.AddBiasReLU, x)
			layer += 2
		}
		x = b.avgPool("avgpool", x)
		for i := range 2 {
			x = b.dropout(fmt.Sprintf("classifier.%d", 3*i), o.Dropout, x)
			x = b.linear(fmt.Sprintf("classifier.%d", 3*i+1), x, vggHidden)
			x = b.activation(fmt.Sprintf("classifier.%d", 3*i+2), device.ReLU, x)
		}
		return b.linear("classifier.6", x, o.Classes)
	})
}
