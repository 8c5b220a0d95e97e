package model

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// buildErrors are networks that cannot be built.
var buildErrors = map[string]struct {
	build func(b *builder) *gorgonia.Node
	want  string
}{
	"widths that do not fit": {func(b *builder) *gorgonia.Node {
		x := b.input(device.Input, 3, 5)
		w, bias := b.param("w", 1, 2, 4), b.param("b", 1, 2)
		b.layer = "fc8"
		return b.apply(device.Linear, 0, x, w, bias)
	}, "layer fc8: linear: inputs of shapes [(3, 5) (2, 4) (2)] do not fit: want *k nk n"},
	"two layers of one name": {func(b *builder) *gorgonia.Node {
		x := b.linear("fc1", b.input(device.Input, 3, 1), 2)
		return b.linear("fc1", x, 2)
	}, `layer fc1: two tensors are named "fc1.weight"`},
	"a parameter that is not used": {func(b *builder) *gorgonia.Node {
		b.param("lost", 1, 4)
		return crossEntropy(b)
	}, "layer gradient: parameter lost has no path to the loss"},
	"a kernel without derivative": {func(b *builder) *gorgonia.Node {
		logits := b.param("logits", 1, 3, 4)
		b.layer = "score"
		return b.apply(device.HalfSquare, 1, b.apply(device.Score, 0, logits, b.input(device.Labels, 3)))
	}, "input 0 of score in layer labels, which has no derivative"},
	"a loss of many numbers": {func(b *builder) *gorgonia.Node {
		return b.apply(device.ReLU, 0, b.param("x", 1, 3))
	}, "layer gradient: the loss has shape (3), want one number"},
	"too few inputs": {func(b *builder) *gorgonia.Node {
		return b.apply(device.Add, 0, b.param("x", 1, 3))
	}, "kernel add applied to 1 inputs"},
	"an unknown kernel": {func(b *builder) *gorgonia.Node {
		return b.apply("tanh", 0, b.param("x", 1, 3))
	}, "kernel tanh applied"},
	"an empty tensor": {func(b *builder) *gorgonia.Node {
		return b.param("x", 1, 3, 0)
	}, "x has shape (3, 0), want every dimension at least 1"},
	"a tensor too large": {func(b *builder) *gorgonia.Node {
		return b.param("x", 1, 1<<16, 1<<16)
	}, "x has shape (65536, 65536)"},
	"too many parameters": {func(b *builder) *gorgonia.Node {
		b.param("x", 1, 1<<15, 1<<15)
		return b.param("y", 1, 1<<15, 1<<15)
	}, "2147483648 parameters up to y"},
	"an output too large": {func(b *builder) *gorgonia.Node {
		b.layer = "wide"
		return b.apply(device.Linear, 0, b.param("x", 1, 1<<16, 1), b.param("w", 1, 1<<16, 1), b.param("b", 1, 1<<16))
	}, "an output of linear has shape (65536, 65536)"},
	"a panic of Gorgonia": {func(b *builder) *gorgonia.Node {
		b.layer = "conv1"
		return b.node(&projection{of: &op{}}, b.param("x", 1, 3))
	}, "layer conv1: "},
	"two operations that Gorgonia takes for one": {func(b *builder) *gorgonia.Node {
		x := b.param("x", 1, 3)
		b.layer = "twice"
		double := b.apply(device.Scale, 2, x).Op().(*op)
		triple := *double
		triple.attr = 3
		return b.node(&triple, x)
	}, "layer twice: gorgonia merged scale#1 into scale#1"},
	"a graph of two": {func(b *builder) *gorgonia.Node {
		b.layer = "mixed"
		return b.apply(device.Add, 0, b.param("x", 1, 3), newBuilder(nil).param("x", 1, 3))
	}, "layer mixed: Not all children have the same graph"},
	"a panic that is no error": {func(b *builder) *gorgonia.Node {
		b.layer = "odd"
		panic("no error")
	}, "layer odd: no error"},
}

// A network that cannot be built is an error that names the layer and the reason.
func TestBuildErrors(t *testing.T) {
	for name, c := range buildErrors {
		g, err := testGraph(3, 1, nil, c.build)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: graph %v, error %v, want it to say %q", name, g, err, c.want)
		}
	}
}

// The gradient by the examples is never built: of k dense layers, all but the first propagate a
// gradient.
func TestNoGradientOfTheExamples(t *testing.T) {
	for _, net := range nets(t) {
		g, err := net.Graph(2, Train, nil)
		if err != nil {
			t.Fatal(err)
		}
		dense, got := len(net.Layout().Tensors())/2, 0
		for _, n := range g.builder.graph.AllNodes() {
			if o, ok := n.Op().(*op); ok && o.def.kernel == device.LinearGradX {
				got++
			}
		}
		if got != dense-1 {
			t.Errorf("%s: %d gradients of inputs for %d dense layers, want %d", net.Name(), got, dense, dense-1)
		}
	}
}

// count returns the number of calls of a kernel in a plan.
func count(p *Plan, k device.Kernel) (n int) {
	for _, c := range p.Code().Calls {
		if c.Kernel == k {
			n++
		}
	}
	return n
}

func TestConstantsAreShared(t *testing.T) {
	b := newBuilder(nil)
	half := b.constant(0.5)
	if again, quarter := b.constant(0.5), b.constant(0.25); again != half || quarter == half {
		t.Error("want one leaf for each number")
	}
}
