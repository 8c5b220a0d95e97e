package model

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// definition describes a kernel to the graph. Its operands, Dims and Attr are defined in package
// device.
type definition struct {
	kernel device.Kernel
	// by marks the inputs that the kernel can be differentiated by; its length is the number of
	// inputs.
	by []bool
	// shapes checks the shapes of the inputs and returns those of the outputs.
	shapes func(in []tensor.Shape) ([]tensor.Shape, error)
	// dims returns the Dims of the call.
	dims func(in []tensor.Shape) []int
	// derive sets grads[i] to the derivative by input i, for the wanted inputs. It is nil if by is
	// all false.
	derive func(d derivation, grads gorgonia.Nodes)
	// window replaces shapes and dims for window kernels: see applyWindow.
	window *windowed
}

// definitions returns the table of all kernels. It is a function because derivatives apply kernels,
// which look them up in this table; a variable would be an initialization cycle.
func definitions() map[device.Kernel]*definition {
	table := map[device.Kernel]*definition{}
	for _, d := range []definition{
		{device.Linear, []bool{true, true, true}, linearShapes, linearDims, linearDerivative, nil},
		{device.LinearGradX, []bool{false, false}, gradXShapes, gradXDims, nil, nil},
		{device.LinearGradW, []bool{false, false}, gradWShapes, gradWDims, nil, nil},
		{device.Sigmoid, []bool{true}, sameShape, elements, through(device.SigmoidGrad), nil},
		{device.SigmoidGrad, []bool{false, false}, sameShape, elements, nil, nil},
		{device.ReLU, []bool{true}, sameShape, elements, through(device.ReLUGrad), nil},
		{device.ReLUGrad, []bool{false, false}, sameShape, elements, nil, nil},
		{device.SoftmaxCrossEntropy, []bool{true, false}, crossEntropyShapes, rowsColumns, crossEntropyDerivative, nil},
		{device.Score, []bool{false, false}, scoreShapes, rowsColumns, nil, nil},
		{device.HalfSquare, []bool{true}, toScalar, elements, halfSquareDerivative, nil},
		{device.Scale, []bool{true}, sameShape, elements, scaleDerivative, nil},
		{device.ScaleBy, []bool{true, false}, scaleByShapes, elements, scaleByDerivative, nil},
		{device.Add, []bool{true, true}, sameShape, elements, addDerivative, nil},
		{device.AddScaled, []bool{true, true}, sameShape, elements, addScaledDerivative, nil},
		{device.MoveAverage, []bool{false, false, false}, moveShapes, elements, nil, nil},
		{device.LinearSigmoid, []bool{false, false, false}, linearShapes, linearDims, nil, nil},
		{device.LinearReLU, []bool{false, false, false}, linearShapes, linearDims, nil, nil},
		{device.LinearGradXSigmoid, []bool{false, false, false}, withLike(gradXShapes), gradXDims, nil, nil},
		{device.LinearGradXReLU, []bool{false, false, false}, withLike(gradXShapes), gradXDims, nil, nil},
		{device.LinearGradWDecay, []bool{false, false, false}, withLike(gradWShapes), gradWDims, nil, nil},
		{device.Conv, []bool{true, true}, nil, nil, convDerivative, convWindow},
		{device.ConvGradX, []bool{false, false}, nil, nil, nil, convGradXWindow},
		{device.ConvGradW, []bool{false, false}, nil, nil, nil, convGradWWindow},
		{device.MaxPool, []bool{true}, nil, nil, maxPoolDerivative, maxPoolWindow},
		{device.MaxPoolGrad, []bool{false, false}, nil, nil, nil, maxPoolGradWindow},
		{device.AvgPool, []bool{true}, nil, nil, avgPoolDerivative, avgPoolWindow},
		{device.AvgPoolGrad, []bool{false}, nil, nil, nil, avgPoolGradWindow},
		{device.BatchNorm, []bool{true, true, true}, channelShapes("mcc", "mcc"), rowsChannels, batchNormDerivative,
			nil},
		{device.BatchNormReLU, []bool{true, true, true}, channelShapes("mcc", "mcc"), rowsChannels,
			batchNormReLUDerivative, nil},
		{device.BatchNormAddReLU, []bool{true, true, true, true}, channelShapes("mccm", "mcc"), rowsChannels,
			batchNormAddReLUDerivative, nil},
		{device.BatchNormGrad, make([]bool, 5), channelShapes("mmccc", "mcc"), rowsChannels, nil, nil},
		{device.BatchNormReLUGrad, make([]bool, 6), channelShapes("mmmccc", "mcc"), rowsChannels, nil, nil},
		{device.BatchNormAddReLUGrad, make([]bool, 6), channelShapes("mmmccc", "mmcc"), rowsChannels, nil, nil},
		{device.Normalize, make([]bool, 5), channelShapes("mcccc", "m"), rowsChannels, nil, nil},
		{device.NormalizeReLU, make([]bool, 5), channelShapes("mcccc", "m"), rowsChannels, nil, nil},
		{device.NormalizeAddReLU, make([]bool, 6), channelShapes("mccccm", "m"), rowsChannels, nil, nil},
	} {
		table[d.kernel] = &d
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

func halfSquareDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.times(d.in[0], d.op.attr)
}

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

func addDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0], grads[1] = d.grad, d.grad
}

func addScaledDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.grad
	if d.op.wanted[1] {
		scaled := make(gorgonia.Nodes, 1)
		scaleDerivative(d, scaled)
		grads[1] = scaled[0]
	}
}

func linearShapes(in []tensor.Shape) ([]tensor.Shape, error) {
	x, w, b := in[0], in[1], in[2]
	if x.Dims() != 2 || w.Dims() != 2 || b.Dims() != 1 || x[1] != w[1] || w[0] != b[0] {
		return nil, fmt.Errorf("x %v, W %v and b %v do not fit: want x m×k, W n×k, b n", x, w, b)
	}
	return []tensor.Shape{{x[0], w[0]}}, nil
}

func linearDims(in []tensor.Shape) []int { return []int{in[0][0], in[1][0], in[0][1]} }

func gradXShapes(in []tensor.Shape) ([]tensor.Shape, error) {
	dy, w := in[0], in[1]
	if dy.Dims() != 2 || w.Dims() != 2 || dy[1] != w[0] {
		return nil, fmt.Errorf("dy %v and W %v do not fit: want dy m×n, W n×k", dy, w)
	}
	return []tensor.Shape{{dy[0], w[1]}}, nil
}

func gradXDims(in []tensor.Shape) []int { return []int{in[0][0], in[0][1], in[1][1]} }

func gradWShapes(in []tensor.Shape) ([]tensor.Shape, error) {
	x, dy := in[0], in[1]
	if x.Dims() != 2 || dy.Dims() != 2 || x[0] != dy[0] {
		return nil, fmt.Errorf("x %v and dy %v do not fit: want x m×k, dy m×n", x, dy)
	}
	return []tensor.Shape{{dy[1], x[1]}, {dy[1]}}, nil
}

func gradWDims(in []tensor.Shape) []int { return []int{in[0][0], in[1][1], in[0][1]} }

// withLike adds one more input, of the shape of output 0.
func withLike(shapes func([]tensor.Shape) ([]tensor.Shape, error)) func([]tensor.Shape) ([]tensor.Shape, error) {
	return func(in []tensor.Shape) ([]tensor.Shape, error) {
		last := len(in) - 1
		out, err := shapes(in[:last])
		if err == nil && !slices.Equal(in[last], out[0]) {
			err = fmt.Errorf("last input %v, want %v, as the output", in[last], out[0])
		}
		return out, err
	}
}

func crossEntropyShapes(in []tensor.Shape) ([]tensor.Shape, error) {
	if err := logitsAndLabels(in); err != nil {
		return nil, err
	}
	return []tensor.Shape{{1}, in[0].Clone()}, nil
}

func scoreShapes(in []tensor.Shape) ([]tensor.Shape, error) {
	return []tensor.Shape{{3}}, logitsAndLabels(in)
}

func logitsAndLabels(in []tensor.Shape) error {
	if logits, labels := in[0], in[1]; logits.Dims() != 2 || labels.Dims() != 1 || logits[0] != labels[0] {
		return fmt.Errorf("logits %v and labels %v do not fit: want logits m×n, labels m", logits, labels)
	}
	return nil
}

func rowsColumns(in []tensor.Shape) []int { return []int{in[0][0], in[0][1]} }

func toScalar([]tensor.Shape) ([]tensor.Shape, error) { return []tensor.Shape{{1}}, nil }

func sameShape(in []tensor.Shape) ([]tensor.Shape, error) {
	for _, s := range in[1:] {
		if !slices.Equal(s, in[0]) { // Shape.Eq treats (3) and (3, 1) as equal
			return nil, fmt.Errorf("shapes %v and %v differ: want equal ones", in[0], s)
		}
	}
	return []tensor.Shape{in[0].Clone()}, nil
}

func scaleByShapes(in []tensor.Shape) ([]tensor.Shape, error) {
	if s := in[1]; s.Dims() != 1 || s[0] != 1 {
		return nil, fmt.Errorf("factor of shape %v: want one number, shape (1)", s)
	}
	return []tensor.Shape{in[0].Clone()}, nil
}

func moveShapes(in []tensor.Shape) ([]tensor.Shape, error) {
	if m := in[2]; m.Dims() != 1 || m[0] != 1 {
		return nil, fmt.Errorf("momentum of shape %v: want one number, shape (1)", m)
	}
	return sameShape(in[:2])
}

func elements(in []tensor.Shape) []int { return []int{size(in[0])} }
