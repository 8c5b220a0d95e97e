package model

import (
	"gorgonia.org/gorgonia"

	"fspda/device"
)

// normEpsilon is added to every variance, as in PyTorch.
const normEpsilon = 1e-5

// convLayer is a convolution without bias: its filter is the parameter name.weight. The padding is
// half the filter's side.
type convLayer struct {
	name         string
	weight       *gorgonia.Node
	side, stride int
}

// newConv adds the filter, outputs × side × side × inputs, initialized normally with variance
// 2/(side²·outputs).
func (b *builder) newConv(name string, inputs, outputs, side, stride int) convLayer {
	return b.newConvOf(name, inputs, outputs, side, side, stride, fanOut(side, outputs))
}

// fanOut starts a filter with normal numbers of variance 2/(side²·outputs).
func fanOut(side, outputs int) start {
	return start{rule: normal, scale: fanOutScale(side * side * outputs)}
}

// newConvOf adds a filter of any height and width.
func (b *builder) newConvOf(name string, inputs, outputs, height, width, stride int, s start) convLayer {
	b.layer = name
	w := b.paramOf(Tensor{Name: name + ".weight", Shape: []int{outputs, height, width, inputs}, Axes: OHWI,
		FanIn: height * width * inputs, start: s})
	return convLayer{name, w, height, stride}
}

// newBiasConv adds the filter and the bias of a convolution, which start as the given rules say.
func (b *builder) newBiasConv(name string, inputs, outputs, side int, filter, bias start) biasConv {
	l := b.newConvOf(name, inputs, outputs, side, side, 1, filter)
	return biasConv{l, b.paramOf(Tensor{Name: name + ".bias", Shape: []int{outputs}, FanIn: side * side * inputs,
		start: bias})}
}

// biasConv is a convolution with the parameter name.bias.
type biasConv struct {
	convLayer
	bias *gorgonia.Node
}

// biased applies a convolution and its bias, with a ReLU or without.
func (b *builder) biased(l biasConv, k device.Kernel, x *gorgonia.Node) *gorgonia.Node {
	return b.apply(k, 0, b.conv(l.convLayer, x), l.bias)
}

func (b *builder) conv(l convLayer, x *gorgonia.Node) *gorgonia.Node {
	b.layer = l.name
	return b.applyWindow(device.Conv, geometry{stride: l.stride, pad: l.side / 2}, x, l.weight)
}

// normLayer is a batch normalization: parameters name.weight and name.bias, buffers
// name.running_mean and name.running_var.
type normLayer struct {
	name           string
	gamma, beta    *gorgonia.Node
	mean, variance *gorgonia.Node // nil if the graph uses no buffers
}

// newNorm adds the tensors of a batch normalization: scale 1 and shift 0, running mean 0 and
// variance 1.
func (b *builder) newNorm(name string, channels int) normLayer {
	b.layer = name
	return normLayer{name, b.normParam(name, "weight", channels, 1), b.normParam(name, "bias", channels, 0),
		b.buffer(name+".running_mean", 0, channels),
		b.buffer(name+".running_var", 1, channels)}
}

// fusedAfter is an operation fused into a batch normalization: the kernel with batch statistics,
// and the one with given statistics.
type fusedAfter struct{ batch, given device.Kernel }

var batchKernels = [...]fusedAfter{
	thenNothing: {device.BatchNorm, device.Normalize},
	thenReLU:    {device.BatchNormReLU, device.NormalizeReLU},
	thenAddReLU: {device.BatchNormAddReLU, device.NormalizeAddReLU}, // adds a residual input z
}

// normalize applies a batch normalization and its fused operation.
func (b *builder) normalize(l normLayer, f fusedAfter, x *gorgonia.Node, z ...*gorgonia.Node) *gorgonia.Node {
	b.layer = l.name
	if b.kind.norm() == fromBuffers {
		return b.apply(f.given, normEpsilon, append([]*gorgonia.Node{x, l.gamma, l.beta, l.mean, l.variance}, z...)...)
	}
	y := b.apply(f.batch, normEpsilon, append([]*gorgonia.Node{x, l.gamma, l.beta}, z...)...)
	if b.kind.norm() == moveBuffers {
		b.move(l.mean, b.project(y, 1), 1)
		// The variance of a single row is no estimate.
		if rows := size(x.Shape()) / l.gamma.Shape()[0]; rows > 1 {
			b.move(l.variance, b.project(y, 2), float64(rows)/float64(rows-1))
		}
	}
	return y
}

// halve applies max-pooling with windows of 2×2 pixels that do not overlap. Of an image with a side
// of one pixel it keeps the pixels.
func (b *builder) halve(name string, x *gorgonia.Node) *gorgonia.Node {
	if s := x.Shape(); s[1] < 2 || s[2] < 2 {
		return x
	}
	b.layer = name
	return b.applyWindow(device.MaxPool, geometry{r: 2, s: 2, stride: 2}, x)
}

func (b *builder) maxPool(name string, x *gorgonia.Node, side, stride int) *gorgonia.Node {
	b.layer = name
	return b.applyWindow(device.MaxPool, geometry{r: side, s: side, stride: stride, pad: side / 2}, x)
}

// avgPool averages over all pixels of an image: n×h×w×c to n×c.
func (b *builder) avgPool(name string, x *gorgonia.Node) *gorgonia.Node {
	b.layer = name
	return b.applyWindow(device.AvgPool, geometry{}, x)
}

// head adds the dense layer at the end of a convolutional network: weights normal with standard
// deviation 0.01, biases 0.
func (b *builder) head(name string, x *gorgonia.Node, classes int) *gorgonia.Node {
	b.layer = name
	inputs := x.Shape()[1]
	w := b.paramOf(Tensor{Name: name + ".weight", Shape: []int{classes, inputs}, FanIn: inputs,
		start: start{rule: normal, scale: 0.01}})
	bias := b.paramOf(Tensor{Name: name + ".bias", Shape: []int{classes}, FanIn: inputs, start: start{rule: constant}})
	return b.apply(device.Linear, 0, x, w, bias)
}
