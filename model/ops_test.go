package model

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// derivativeCase is an expression over new parameters, for a batch of 3 examples of one number,
// with labels below 4.
type derivativeCase struct {
	kernel device.Kernel
	build  func(b *builder) *gorgonia.Node
}

func unary(k device.Kernel, attr float64) derivativeCase {
	return derivativeCase{k, func(b *builder) *gorgonia.Node { return b.apply(k, attr, b.param("x", 1, 7)) }}
}

func crossEntropy(b *builder) *gorgonia.Node {
	return b.apply(device.SoftmaxCrossEntropy, 0, b.param("logits", 1, 3, 4), b.input(device.Labels, 3))
}

var opCases = map[string]derivativeCase{
	"linear": {device.Linear, func(b *builder) *gorgonia.Node {
		return b.apply(device.Linear, 0, b.param("x", 1, 3, 4), b.param("w", 1, 2, 4), b.param("b", 1, 2))
	}},
	"sigmoid":       unary(device.Sigmoid, 0),
	"relu":          unary(device.ReLU, 0),
	"half square":   unary(device.HalfSquare, 0.3),
	"square by 1":   unary(device.HalfSquare, 1),
	"scale":         unary(device.Scale, -1.5),
	"cross entropy": {device.SoftmaxCrossEntropy, crossEntropy},
	"smoothed cross entropy": {device.SoftmaxCrossEntropy, func(b *builder) *gorgonia.Node {
		return b.apply(device.SoftmaxCrossEntropy, 0.1, b.param("logits", 1, 3, 4), b.input(device.Labels, 3))
	}},
	"mixed cross entropy": {device.SoftmaxCrossEntropyMixed, func(b *builder) *gorgonia.Node {
		b.mixed = true
		return b.apply(device.SoftmaxCrossEntropyMixed, 0.1, b.param("logits", 1, 3, 4), b.input(device.Labels, 3, 3))
	}},
	"half of a cross entropy": {device.Scale, func(b *builder) *gorgonia.Node {
		return b.apply(device.Scale, 0.5, crossEntropy(b))
	}},
	"scale by": {device.ScaleBy, func(b *builder) *gorgonia.Node {
		return b.apply(device.ScaleBy, 2, b.param("x", 1, 7),
			b.apply(device.HalfSquare, 1, b.input(device.Input, 3, 1)))
	}},
	"add": {device.Add, func(b *builder) *gorgonia.Node {
		return b.apply(device.Add, 0, b.param("x", 1, 7), b.param("y", 1, 7))
	}},
	"add to itself": {device.Add, func(b *builder) *gorgonia.Node {
		x := b.param("x", 1, 7)
		return b.apply(device.Add, 0, x, x)
	}},
	"add scaled": {device.AddScaled, func(b *builder) *gorgonia.Node {
		return b.apply(device.AddScaled, 0.4, b.param("x", 1, 7), b.param("y", 1, 7))
	}},
	"add scaled scalars": {device.AddScaled, func(b *builder) *gorgonia.Node {
		return b.apply(device.AddScaled, 0.4, crossEntropy(b), b.apply(device.HalfSquare, 1, b.param("x", 1, 7)))
	}},
	"a gradient that goes into another": {device.Add, func(b *builder) *gorgonia.Node {
		x, y := b.param("x", 1, 7), b.param("y", 1, 7)
		return b.apply(device.Add, 0, b.apply(device.HalfSquare, 1,
			b.apply(device.Sigmoid, 0, b.apply(device.Add, 0, x, y))), b.apply(device.HalfSquare, 0.3, y))
	}},
	"a tensor of three uses": {device.Add, func(b *builder) *gorgonia.Node {
		x := b.param("x", 1, 7)
		s := b.apply(device.Sigmoid, 0, x)
		return b.apply(device.Add, 0, b.apply(device.Add, 0, s, x), b.apply(device.ReLU, 0, x))
	}},
}

// Every derivative agrees with finite differences. A scalar is used as the loss itself; otherwise
// the loss is the root of 1.5/2·Σy², which propagates a non-constant gradient.
func TestDerivatives(t *testing.T) {
	covered := map[device.Kernel]bool{}
	for name, c := range opCases {
		covered[c.kernel] = true
		for _, square := range []bool{true, false} {
			if !square && size(c.build(newBuilder(nil)).Shape()) != 1 {
				continue
			}
			g, err := testGraph(3, 1, nil, func(b *builder) *gorgonia.Node {
				n := c.build(b)
				if square {
					n = b.apply(device.HalfSquare, 1.5, n)
				}
				return n
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			p, err := g.Compile()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			t.Run(name, func(t *testing.T) {
				checkGradient(t, p.Code(), random(p.Code().Dim, 1), []float64{0.7, -1, 0.4}, []int32{2, 0, 3})
			})
		}
	}
	for _, def := range definitions() {
		if def.derive != nil && !covered[def.kernel] {
			t.Errorf("%s has a derivative and no case here", def.kernel)
		}
	}
}

func TestTableHasEveryKernel(t *testing.T) {
	table := definitions()
	for _, k := range device.Kernels() {
		def := table[k]
		if def == nil {
			t.Errorf("no definition of %s", k)
			continue
		}
		differentiable := false
		for _, d := range def.by {
			differentiable = differentiable || d
		}
		if differentiable != (def.derive != nil) {
			t.Errorf("%s: differentiable is %v, but a derivative exists: %v", k, differentiable, def.derive != nil)
		}
	}
	if n := len(table); n != len(device.Kernels()) {
		t.Errorf("%d definitions of %d kernels", n, len(device.Kernels()))
	}
}

func TestShapesThatDoNotFit(t *testing.T) {
	table := definitions()
	for _, c := range []struct {
		kernel device.Kernel
		in     []tensor.Shape
	}{
		{device.Linear, []tensor.Shape{{3, 4}, {2, 5}, {2}}},
		{device.Linear, []tensor.Shape{{3, 4}, {2, 4}, {3}}},
		{device.Linear, []tensor.Shape{{4}, {2, 4}, {2}}},
		{device.LinearGradX, []tensor.Shape{{3, 3}, {2, 4}}},
		{device.LinearGradX, []tensor.Shape{{3}, {3, 4}}},
		{device.LinearGradW, []tensor.Shape{{3, 4}, {2, 4}}},
		{device.LinearGradW, []tensor.Shape{{3, 4}, {3}}},
		{device.SoftmaxCrossEntropy, []tensor.Shape{{3, 4}, {4}}},
		{device.SoftmaxCrossEntropy, []tensor.Shape{{3}, {3}}},
		{device.SoftmaxCrossEntropyMixed, []tensor.Shape{{3, 4}, {3}}},
		{device.Score, []tensor.Shape{{3, 4}, {3, 1}}},
		{device.SigmoidGrad, []tensor.Shape{{3}, {4}}},
		{device.ReLUGrad, []tensor.Shape{{3}, {3, 1}}},
		{device.ScaleBy, []tensor.Shape{{3}, {3}}},
		{device.Add, []tensor.Shape{{2, 3}, {3, 2}}},
		{device.AddScaled, []tensor.Shape{{2}, {1}}},
		{device.LinearGradXReLU, []tensor.Shape{{3, 2}, {2, 4}, {4, 3}}},
		{device.LinearGradXSigmoid, []tensor.Shape{{3, 3}, {2, 4}, {3, 4}}},
		{device.LinearGradWDecay, []tensor.Shape{{3, 4}, {3, 2}, {4, 2}}},
	} {
		if out, err := table[c.kernel].shapes(c.in, geometry{}); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s of %v gave %v, error %v", c.kernel, c.in, out, err)
		}
	}
}
