package model

import (
	"strings"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// definition describes a kernel to the graph. Its operands, Dims and Attr are defined in package
// device.
//
// Shapes have a letter for each axis, and axes with the same letter have the same size. A digit
// stands for that size, before a letter for a multiple of it, and a leading * for one or more axes
// of any size. In kernels with a window an image is h×w, the window r×s, and it has p×q positions;
// t is its stride, d the padding. The c channels of an image may form G groups. In kernels of
// language models b windows have T tokens, and a row has c numbers, or H heads of e.
type definition struct {
	kernel  device.Kernel
	in, out string // shapes of the inputs and the outputs
	dims    string // the Dims of the call: products of axes
	// by marks the inputs that the kernel can be differentiated by; nil: none
	by []bool
	// derive sets grads[i] to the derivative by input i, for the wanted inputs. It is nil without by.
	derive func(d derivation, grads gorgonia.Nodes)
}

// definitions returns the table of all kernels. It is a function because derivatives apply kernels,
// which look them up in this table; a variable would be an initialization cycle.
func definitions() map[device.Kernel]*definition {
	const conv, pool, linear = "n h w c k r s t d", "n h w c r t d", "* n k"
	one, first, both, three := []bool{true}, []bool{true, false}, []bool{true, true}, []bool{true, true, true}
	table := map[device.Kernel]*definition{}
	for _, d := range []definition{
		{device.Linear, "*k nk n", "*n", linear, three, linearDerivative},
		{device.LinearGradX, "*n nk", "*k", linear, nil, nil},
		{device.LinearGradW, "*k *n", "nk n", linear, nil, nil},
		{device.Sigmoid, "*", "*", "*", one, through(device.SigmoidGrad)},
		{device.SigmoidGrad, "* *", "*", "*", nil, nil},
		{device.ReLU, "*", "*", "*", one, through(device.ReLUGrad)},
		{device.ReLUGrad, "* *", "*", "*", nil, nil},
		{device.SoftmaxCrossEntropy, "*n *", "1 *n", "* n", first, crossEntropyDerivative},
		{device.SoftmaxCrossEntropyMixed, "mn m3", "1 mn", "m n", first, crossEntropyDerivative},
		{device.Score, "*n *", "3", "* n", nil, nil},
		{device.HalfSquare, "*", "1", "*", one, halfSquareDerivative},
		{device.Scale, "*", "*", "*", one, scaleDerivative},
		{device.ScaleBy, "* 1", "*", "*", first, scaleByDerivative},
		{device.Add, "* *", "*", "*", both, addDerivative},
		{device.AddScaled, "* *", "*", "*", both, addScaledDerivative},
		{device.Dropout, "* 4", "*", "* l", first, dropoutDerivative},
		{device.MoveAverage, "* * 1", "*", "*", nil, nil},
		{device.LinearSigmoid, "*k nk n", "*n", linear, nil, nil},
		{device.LinearReLU, "*k nk n", "*n", linear, nil, nil},
		{device.LinearGradXSigmoid, "*n nk *k", "*k", linear, nil, nil},
		{device.LinearGradXReLU, "*n nk *k", "*k", linear, nil, nil},
		{device.LinearGradWDecay, "*k *n nk", "nk n", linear, nil, nil},
		{device.Conv, "nhwc krsc", "npqk", conv, both, convDerivative},
		{device.ConvGradX, "npqk krsc", "nhwc", conv, nil, nil},
		{device.ConvGradW, "nhwc npqk", "krsc", conv, nil, nil},
		{device.MaxPool, "nhwc", "npqc npqc", pool, one, maxPoolDerivative},
		{device.MaxPoolGrad, "npqc npqc", "nhwc", pool, nil, nil},
		{device.AvgPool, "nhwc", "nc", "n hw c", one, avgPoolDerivative},
		{device.AvgPoolGrad, "nc", "nhwc", "n hw c", nil, nil},
		{device.BatchNorm, "*c c c", "*c c c", "* c", three, batchNormDerivative},
		{device.BatchNormReLU, "*c c c", "*c c c", "* c", three, batchNormReLUDerivative},
		{device.BatchNormAddReLU, "*c c c *c", "*c c c", "* c", []bool{true, true, true, true},
			batchNormAddReLUDerivative},
		{device.BatchNormGrad, "*c *c c c c", "*c c c", "* c", nil, nil},
		{device.BatchNormReLUGrad, "*c *c *c c c c", "*c c c", "* c", nil, nil},
		{device.BatchNormAddReLUGrad, "*c *c *c c c c", "*c *c c c", "* c", nil, nil},
		{device.Normalize, "*c c c c c", "*c", "* c", nil, nil},
		{device.NormalizeReLU, "*c c c c c", "*c", "* c", nil, nil},
		{device.NormalizeAddReLU, "*c c c c c *c", "*c", "* c", nil, nil},
	} {
		table[d.kernel] = &d
	}
	groupDefinitions(table)
	languageDefinitions(table)
	for _, d := range table {
		if d.by == nil {
			d.by = make([]bool, len(strings.Fields(d.in)))
		}
	}
	return table
}

// derivation is the context of a derivative: the operation, the nodes of its inputs and its output,
// and the gradient of the loss by that output.
type derivation struct {
	b         *builder
	op        *op
	in        gorgonia.Nodes
	out, grad *gorgonia.Node
}

// times returns (a·grad)·x for a scalar grad: the chain rule of a kernel with a scalar output. A
// constant gradient, such as the initial 1 of the backward pass, is multiplied into a, and a factor
// of 1 is omitted.
func (d derivation) times(x *gorgonia.Node, a float64) *gorgonia.Node {
	c, constant := d.b.constants[d.grad]
	switch {
	case !constant:
		return d.b.apply(device.ScaleBy, a, x, d.grad)
	case c*a == 1:
		return x
	default:
		return d.b.apply(device.Scale, c*a, x)
	}
}

func linearDerivative(d derivation, grads gorgonia.Nodes) {
	x, w := d.in[0], d.in[1]
	if d.op.wanted[0] {
		grads[0] = d.b.apply(device.LinearGradX, 0, d.grad, w)
	}
	if d.op.wanted[1] || d.op.wanted[2] {
		grads[1] = d.b.apply(device.LinearGradW, 0, x, d.grad)
		grads[2] = d.b.project(grads[1], 1)
	}
}

// through is the derivative of an element-wise function that depends only on its output: a kernel
// of output and gradient.
func through(k device.Kernel) func(derivation, gorgonia.Nodes) {
	return func(d derivation, grads gorgonia.Nodes) { grads[0] = d.b.apply(k, 0, d.out, d.grad) }
}

func crossEntropyDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.times(d.b.project(d.out, 1), 1)
}

func halfSquareDerivative(d derivation, grads gorgonia.Nodes) { grads[0] = d.times(d.in[0], d.op.attr) }

func scaleDerivative(d derivation, grads gorgonia.Nodes) {
	if c, constant := d.b.constants[d.grad]; constant {
		grads[0] = d.b.constant(c * d.op.attr)
		return
	}
	grads[0] = d.b.apply(device.Scale, d.op.attr, d.grad)
}

func scaleByDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.b.apply(device.ScaleBy, d.op.attr, d.grad, d.in[1])
}

func addDerivative(d derivation, grads gorgonia.Nodes) { grads[0], grads[1] = d.grad, d.grad }

func addScaledDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.grad
	if d.op.wanted[1] {
		scaled := make(gorgonia.Nodes, 1)
		scaleDerivative(d, scaled)
		grads[1] = scaled[0]
	}
}

func convDerivative(d derivation, grads gorgonia.Nodes) {
	x, w, g := d.in[0], d.in[1], d.op.geometry
	g.h, g.w, g.r, g.s = x.Shape()[1], x.Shape()[2], w.Shape()[1], w.Shape()[2]
	if d.op.wanted[0] {
		grads[0] = d.b.applyWindow(device.ConvGradX, g, d.grad, w)
	}
	if d.op.wanted[1] {
		grads[1] = d.b.applyWindow(device.ConvGradW, g, x, d.grad)
	}
}

func maxPoolDerivative(d derivation, grads gorgonia.Nodes) {
	g := d.op.geometry
	g.h, g.w = d.in[0].Shape()[1], d.in[0].Shape()[2]
	grads[0] = d.b.applyWindow(device.MaxPoolGrad, g, d.grad, d.b.project(d.out, 1))
}

func avgPoolDerivative(d derivation, grads gorgonia.Nodes) {
	g := geometry{h: d.in[0].Shape()[1], w: d.in[0].Shape()[2]}
	grads[0] = d.b.applyWindow(device.AvgPoolGrad, g, d.grad)
}

// batchNormDerivative uses the statistics of the forward pass, its outputs 1 and 2.
func batchNormDerivative(d derivation, grads gorgonia.Nodes) {
	x, gamma, mean, variance := d.in[0], d.in[1], d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.BatchNormGrad, d.op.attr, x, d.grad, gamma, mean, variance)
	grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2)
}

func batchNormReLUDerivative(d derivation, grads gorgonia.Nodes) {
	x, gamma, mean, variance := d.in[0], d.in[1], d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.BatchNormReLUGrad, d.op.attr, x, d.out, d.grad, gamma, mean, variance)
	grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2)
}

func batchNormAddReLUDerivative(d derivation, grads gorgonia.Nodes) {
	x, gamma, mean, variance := d.in[0], d.in[1], d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.BatchNormAddReLUGrad, d.op.attr, x, d.out, d.grad, gamma, mean, variance)
	grads[3], grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2), d.b.project(grads[0], 3)
}
