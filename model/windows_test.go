package model

import (
	"math"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/cpu"
	"fspda/device"
)

func init() {
	conv := func(g geometry, x, w [4]int) derivativeCase {
		return derivativeCase{device.Conv, func(b *builder) *gorgonia.Node {
			return b.applyWindow(device.Conv, g, b.param("x", 1, x[:]...), b.param("w", 1, w[:]...))
		}}
	}
	pool := func(g geometry, x ...int) derivativeCase {
		return derivativeCase{device.MaxPool, func(b *builder) *gorgonia.Node {
			return b.applyWindow(device.MaxPool, g, b.param("x", 1, x...))
		}}
	}
	norm := func(k device.Kernel, others int) derivativeCase {
		return derivativeCase{k, func(b *builder) *gorgonia.Node {
			in := []*gorgonia.Node{b.param("x", 1, 2, 3, 2, 3), b.param("gamma", 1, 3), b.param("beta", 1, 3)}
			if others > 0 {
				in = append(in, b.param("z", 1, 2, 3, 2, 3))
			}
			return b.apply(k, 0.1, in...)
		}}
	}
	for name, c := range map[string]derivativeCase{
		"conv 1×1":           conv(geometry{stride: 1}, [4]int{2, 3, 2, 3}, [4]int{2, 1, 1, 3}),
		"conv 3×3":           conv(geometry{stride: 1, pad: 1}, [4]int{1, 4, 3, 2}, [4]int{3, 3, 3, 2}),
		"conv 3×2, strided":  conv(geometry{stride: 2, pad: 1}, [4]int{1, 5, 4, 2}, [4]int{2, 3, 2, 2}),
		"conv with leftover": conv(geometry{stride: 3}, [4]int{2, 6, 6, 1}, [4]int{2, 2, 2, 1}),
		"max pool":           pool(geometry{r: 3, s: 3, stride: 2, pad: 1}, 1, 5, 4, 2),
		"avg pool": {device.AvgPool, func(b *builder) *gorgonia.Node {
			return b.applyWindow(device.AvgPool, geometry{}, b.param("x", 1, 2, 3, 2, 3))
		}},
		"batch norm":          norm(device.BatchNorm, 0),
		"batch norm relu":     norm(device.BatchNormReLU, 0),
		"batch norm add relu": norm(device.BatchNormAddReLU, 1),
	} {
		opCases[name] = c
	}
}

// residual is a small network of all parts of a residual network, over 2 examples of 6×6×2.
func residual(b *builder) *gorgonia.Node {
	norm := func(name string, k device.Kernel, x *gorgonia.Node, z ...*gorgonia.Node) *gorgonia.Node {
		c := x.Shape()[3]
		return b.apply(k, 1e-3, append([]*gorgonia.Node{x, b.param(name+".weight", 1, c), b.param(name+".bias", 1, c)},
			z...)...)
	}
	conv := func(name string, x *gorgonia.Node, k, side, stride int) *gorgonia.Node {
		w := b.param(name, 1, k, side, side, x.Shape()[3])
		return b.applyWindow(device.Conv, geometry{stride: stride, pad: side / 2}, x, w)
	}
	x := b.input(device.Input, 2, 6, 6, 2)
	x = norm("bn1", device.BatchNormReLU, conv("conv1", x, 4, 3, 1))
	x = b.applyWindow(device.MaxPool, geometry{r: 3, s: 3, stride: 2, pad: 1}, x)
	y := norm("bn2", device.BatchNormReLU, conv("conv2", x, 3, 1, 1))
	y = conv("conv3", y, 5, 3, 2)
	x = norm("bn3", device.BatchNormAddReLU, y, norm("bn4", device.BatchNorm, conv("down", x, 5, 1, 2)))
	x = norm("bn5", device.BatchNormAddReLU, conv("conv4", x, 5, 3, 1), x)
	x = b.applyWindow(device.AvgPool, geometry{}, x)
	return b.loss(b.linear("fc", x, 4), b.input(device.Labels, 2), LossOptions{WeightDecay: 0.1})
}

// Its gradient agrees with finite differences, and its plan on the host has the bits of Gorgonia's
// own machine.
func TestResidualNetwork(t *testing.T) {
	g, err := testGraph(2, 72, cpu.Call, residual)
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	checkPlaces(t, "residual", p)
	labels := []int32{3, 1}
	x := random(144, 31)
	checkGradient(t, p.Code(), random(p.Code().Dim, 32), x, labels)

	params, b := round(random(p.Code().Dim, 32)), device.Batch{X: round(x), Y: labels}
	got, results := onDevice(t, p.Code(), params, b)
	want, out := make([]float32, p.Code().Dim), make([]float64, 1)
	if err := g.Evaluate(params, want, b, out); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			t.Fatalf("derivative by parameter %d is %v, Gorgonia's machine has %v", i, got[i], want[i])
		}
	}
	if results[0] != out[0] {
		t.Errorf("loss %v, Gorgonia's machine has %v", results[0], out[0])
	}
}

func TestWindowsThatDoNotFit(t *testing.T) {
	table := definitions()
	image := tensor.Shape{2, 5, 4, 3}
	for _, c := range []struct {
		kernel device.Kernel
		g      geometry
		in     []tensor.Shape
	}{
		{device.Conv, geometry{stride: 1}, []tensor.Shape{image, {2, 3, 3, 4}}},
		{device.Conv, geometry{stride: 1}, []tensor.Shape{image, {2, 3, 3}}},
		{device.Conv, geometry{stride: 0}, []tensor.Shape{image, {2, 3, 3, 3}}},
		{device.Conv, geometry{stride: 1, pad: 3}, []tensor.Shape{image, {2, 3, 3, 3}}},
		{device.Conv, geometry{stride: 1}, []tensor.Shape{image, {2, 6, 3, 3}}},
		{device.ConvGradX, geometry{h: 5, w: 4, stride: 1}, []tensor.Shape{{2, 3, 3, 2}, {2, 3, 3, 3}}},
		{device.ConvGradW, geometry{r: 3, s: 3, stride: 1}, []tensor.Shape{image, {2, 3, 3, 2}}},
		{device.MaxPool, geometry{r: 7, s: 7, stride: 1}, []tensor.Shape{image}},
		{device.MaxPool, geometry{r: 3, s: 3, stride: 1}, []tensor.Shape{{5, 4}}},
		{device.MaxPoolGrad, geometry{h: 5, w: 4, r: 3, s: 3, stride: 1}, []tensor.Shape{{2, 3, 2, 3}, {2, 3, 3, 3}}},
		{device.AvgPool, geometry{}, []tensor.Shape{{5, 4}}},
		{device.AvgPoolGrad, geometry{h: 5, w: 4}, []tensor.Shape{image}},
	} {
		if out, err := table[c.kernel].shapes(c.in, c.g); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s of %v with %+v gave %v, error %v", c.kernel, c.in, c.g, out, err)
		}
	}
	for _, in := range [][]tensor.Shape{{{3}, {3}, {3}}, {{2, 3}, {2}, {3}}, {{2, 3}, {3}, {3, 1}}} {
		out, err := table[device.BatchNorm].shapes(in, geometry{})
		if err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("batch norm of %v gave %v, error %v", in, out, err)
		}
	}
}
