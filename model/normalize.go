package model

import (
	"gorgonia.org/gorgonia"

	"fspda/device"
)

// normalizer adds the tensors of a normalization of some channels and returns a function that
// applies it, and the operation that follows it, to x; z is a summand.
type normalizer func(b *builder, name string, channels int, f follows) func(x *gorgonia.Node,
	z ...*gorgonia.Node) *gorgonia.Node

// follows is the operation after a normalization: nothing, a ReLU or its like, or a residual sum
// and a ReLU.
type follows int

const (
	thenNothing follows = iota
	thenReLU
	thenAddReLU
)

// normalizers of residual networks by the name of [ResNetOptions].Norm.
var normalizers = map[string]normalizer{"": batchNorms, "gn": groupNorms, "evonorm": evoNorms}

// batchNorms normalize by the statistics of a batch, or by the buffers.
func batchNorms(b *builder, name string, channels int, f follows) func(x *gorgonia.Node,
	z ...*gorgonia.Node) *gorgonia.Node {
	l := b.newNorm(name, channels)
	return func(x *gorgonia.Node, z ...*gorgonia.Node) *gorgonia.Node {
		return b.normalize(l, batchKernels[f], x, z...)
	}
}

// resNetGroups is the number of groups of the group norms of residual networks. GN-LeNet has as
// many.
const resNetGroups = 2

var groupKernels = [...]device.Kernel{device.GroupNorm, device.GroupNormReLU, device.GroupNormAddReLU}

// groupNorms normalize two groups of the channels of each image.
func groupNorms(b *builder, name string, channels int, f follows) func(x *gorgonia.Node,
	z ...*gorgonia.Node) *gorgonia.Node {
	return b.groupNorm(name, channels, min(resNetGroups, channels), f)
}

// groupNorm is a group normalization: parameters name.weight and name.bias.
func (b *builder) groupNorm(name string, channels, groups int, f follows) func(x *gorgonia.Node,
	z ...*gorgonia.Node) *gorgonia.Node {
	b.layer = name
	gamma, beta := b.normParam(name, "weight", channels, 1), b.normParam(name, "bias", channels, 0)
	return func(x *gorgonia.Node, z ...*gorgonia.Node) *gorgonia.Node {
		b.layer = name
		return b.applyAs(groupKernels[f], geometry{groups: groups}, normEpsilon, append([]*gorgonia.Node{x, gamma,
			beta}, z...)...)
	}
}

// evoNormGroups is the largest number of groups of EvoNorm-S0.
const evoNormGroups = 32

// evoNorms are EvoNorm-S0 where a ReLU follows a normalization, with parameters name.weight,
// name.bias and name.v, and group norms elsewhere.
func evoNorms(b *builder, name string, channels int, f follows) func(x *gorgonia.Node,
	z ...*gorgonia.Node) *gorgonia.Node {
	if f != thenReLU {
		return groupNorms(b, name, channels, f)
	}
	b.layer = name
	gamma, beta, v := b.normParam(name, "weight", channels, 1), b.normParam(name, "bias", channels, 0),
		b.normParam(name, "v", channels, 1)
	groups := min(evoNormGroups, channels)
	return func(x *gorgonia.Node, _ ...*gorgonia.Node) *gorgonia.Node {
		b.layer = name
		return b.applyAs(device.EvoNorm, geometry{groups: groups}, normEpsilon, x, gamma, beta, v)
	}
}

// normParam adds a parameter of a normalization, which starts as v.
func (b *builder) normParam(name, what string, channels int, v float64) *gorgonia.Node {
	return b.paramOf(Tensor{Name: name + "." + what, Shape: []int{channels}, FanIn: 1, norm: true,
		start: start{rule: constant, scale: v}})
}
