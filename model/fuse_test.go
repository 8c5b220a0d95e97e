package model

import (
	"math"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"fspda/cpu"
	"fspda/device"
)

// Every activation is fused with the preceding matrix product, and so is every derivative of one.
func TestActivationsAreFused(t *testing.T) {
	for _, net := range nets(t) {
		p := mustPlan(t, net, 4, Train)
		hidden := len(net.layout.tensors)/2 - 1
		got := count(p, device.LinearSigmoid) + count(p, device.LinearReLU)
		back := count(p, device.LinearGradXSigmoid) + count(p, device.LinearGradXReLU)
		if got != hidden || back != hidden {
			t.Errorf("%s: %d fused layers forward and %d back, want %d:\n%v", net.name, got, back, hidden, p)
		}
		for _, k := range []device.Kernel{device.Sigmoid, device.ReLU, device.SigmoidGrad, device.ReLUGrad,
			device.LinearGradX} {
			if n := count(p, k); n != 0 {
				t.Errorf("%s: %d calls of %s are left", net.name, n, k)
			}
		}
	}
}

// A fused call has the names of both layers.
func TestFusedNames(t *testing.T) {
	p := mustPlan(t, mnist(t), 4, Train)
	names := map[device.Kernel]string{}
	for _, c := range p.Code().Calls {
		names[c.Kernel] += " " + c.Name
	}
	for k, want := range map[device.Kernel]string{
		device.LinearSigmoid: " fc1+act1", device.LinearGradXSigmoid: " fc2+act1",
		device.LinearGradWDecay: " fc2.weight fc1.weight",
	} {
		if names[k] != want {
			t.Errorf("%s is called%s, want%s", k, names[k], want)
		}
	}
}

// sameFused compares the gradients of a fused and an unfused plan of any loss.
func sameFused(t *testing.T, what string, g *Graph) {
	t.Helper()
	plain, err := g.compile(false)
	if err != nil {
		t.Fatal(err)
	}
	fused, err := g.compile(true)
	if err != nil {
		t.Fatal(err)
	}
	b := device.Batch{X: round(random(g.batch*g.features, 21)), Y: make([]int32, g.batch)}
	params := round(random(plain.Code().Dim, 22))
	want, _ := onDevice(t, plain.Code(), params, b)
	got, _ := onDevice(t, fused.Code(), params, b)
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			t.Fatalf("%s: derivative by parameter %d is %v, unfused %v", what, i, got[i], want[i])
		}
	}
}

// A value with another reader is not fused: here the sum before the activation, or the gradient
// after it.
func TestSharedValuesAreNotFused(t *testing.T) {
	for what, c := range map[string]struct {
		loss func(b *builder) *gorgonia.Node
		none []device.Kernel
	}{
		"the sum before the activation": {func(b *builder) *gorgonia.Node {
			z := b.linear("fc1", b.input(device.Input, 3, 4), 5)
			return b.apply(device.HalfSquare, 1, b.apply(device.Add, 0, b.apply(device.Sigmoid, 0, z), z))
		}, []device.Kernel{device.LinearSigmoid}},
		"the gradient before the derivative": {func(b *builder) *gorgonia.Node {
			x := b.param("x", 1, 3, 4)
			y := b.apply(device.ReLU, 0, x)
			z := b.linear("fc1", b.apply(device.Add, 0, y, b.param("u", 1, 3, 4)), 5)
			return b.apply(device.HalfSquare, 1, z)
		}, []device.Kernel{device.LinearGradXReLU}},
	} {
		g, err := testGraph(3, 4, cpu.Call, c.loss)
		if err != nil {
			t.Fatal(err)
		}
		p, err := g.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.none {
			if n := count(p, k); n != 0 {
				t.Errorf("%s: %d calls of %s, want none:\n%v", what, n, k, p)
			}
		}
		checkPlaces(t, what, p)
		g, err = testGraph(3, 4, cpu.Call, c.loss)
		if err != nil {
			t.Fatal(err)
		}
		sameFused(t, what, g)
	}
}

func TestBothNames(t *testing.T) {
	for _, c := range [][3]string{{"fc1", "act1", "fc1+act1"}, {"fc1", "fc1.weight", "fc1.weight"},
		{"fc1", "fc1", "fc1"}, {"fc1", "fc12.weight", "fc1+fc12.weight"}} {
		if got := joinNames(c[0], c[1]); got != c[2] {
			t.Errorf("%s and %s are %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if strings.Contains(joinNames("a", "b"), " ") {
		t.Error("a name with a blank would not stay in its column")
	}
}
