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
	b.layer = name
	w := b.paramOf(Tensor{Name: name + ".weight", Shape: []int{outputs, side, side, inputs},
		Axes: OHWI, FanIn: side * side * inputs, start: start{rule: normal, scale: fanOutScale(side * side * outputs)}})
	return convLayer{name, w, side, stride}
}

// conv applies a convolution.
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
	one := func(what string, v float64) *gorgonia.Node {
		return b.paramOf(Tensor{Name: name + "." + what, Shape: []int{channels}, FanIn: 1, norm: true,
			start: start{rule: constant, scale: v}})
	}
	return normLayer{name, one("weight", 1), one("bias", 0), b.buffer(name+".running_mean", 0, channels),
		b.buffer(name+".running_var", 1, channels)}
}

// fusedAfter is an operation fused into a batch normalization: the kernel with batch statistics,
// and the one with given statistics.
type fusedAfter struct{ batch, given device.Kernel }

var (
	thenNothing = fusedAfter{device.BatchNorm, device.Normalize}
	thenReLU    = fusedAfter{device.BatchNormReLU, device.NormalizeReLU}
	// with a residual input z
	thenAddReLU = fusedAfter{device.BatchNormAddReLU, device.NormalizeAddReLU}
)

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

// maxPool applies max-pooling with side×side windows.
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
