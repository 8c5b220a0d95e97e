package model

import (
	"math"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"fspda/cpu"
	"fspda/device"
)

// Weight decay costs no buffer and no extra pass: each decayed tensor has one call that adds it and
// no Scale or Add.
func TestWeightDecayIsFused(t *testing.T) {
	for _, net := range nets(t) {
		p := mustPlan(t, net, 4, Train)
		want := 0
		if net.loss.WeightDecay != 0 {
			want = len(net.layout.tensors)
		}
		if got := count(p, device.AddScaled) + count(p, device.LinearGradWDecay); got != want {
			t.Errorf("%s decay %v: %d fused additions, want %d", net.name, net.loss.WeightDecay, got, want)
		}
		if got := count(p, device.Scale); got != 0 {
			t.Errorf("%s decay %v: %d multiplications are left", net.name, net.loss.WeightDecay, got)
		}
		if got := count(p, device.Add); got != want { // those of the loss
			t.Errorf("%s decay %v: %d additions, want %d", net.name, net.loss.WeightDecay, got, want)
		}
	}
}

// Fusing changes no bit.
func TestFusedIsUnfused(t *testing.T) {
	net := mnist(t)
	const batch = 7
	g, err := net.Graph(batch, Train, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := g.compile(false)
	if err != nil {
		t.Fatal(err)
	}
	fused, err := g.compile(true)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := len(plain.Code().Calls), len(fused.Code().Calls); a != b+8 {
		t.Errorf("%d calls, %d after fusing, want 8 fewer", a, b)
	}
	b := device.Batch{X: round(random(batch*784, 15)), Y: randomLabels(batch, 10, 16)}
	want, _ := onDevice(t, plain.Code(), net.Init(2), b)
	got, _ := onDevice(t, fused.Code(), net.Init(2), b)
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			t.Fatalf("derivative by parameter %d is %v, unfused %v", i, got[i], want[i])
		}
	}
}

// A product with another reader is not fused.
func TestSharedProductIsNotFused(t *testing.T) {
	g, err := testGraph(3, 1, cpu.Call, func(b *builder) *gorgonia.Node {
		x := b.param("x", 1, 7)
		scaled := b.apply(device.Scale, 3, x)
		return b.apply(device.HalfSquare, 1, b.apply(device.Add, 0, b.apply(device.Sigmoid, 0, scaled), scaled))
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if n := count(p, device.AddScaled); n != 0 {
		t.Errorf("%d fused additions, want none:\n%v", n, p)
	}
	checkGradient(t, p.Code(), random(7, 17), nil, nil)
}

// The product may be either operand of the sum.
func TestProductOnTheLeftIsFused(t *testing.T) {
	g, err := testGraph(3, 1, cpu.Call, func(b *builder) *gorgonia.Node {
		x, y := b.param("x", 1, 7), b.param("y", 1, 7)
		return b.apply(device.HalfSquare, 1, b.apply(device.Add, 0, b.apply(device.Scale, 3, x), y))
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if n := count(p, device.AddScaled); n != 1 {
		t.Errorf("%d fused additions, want 1:\n%v", n, p)
	}
	checkGradient(t, p.Code(), random(14, 18), nil, nil)
}

// Nodes that no result needs are not computed.
func TestUnreachableNodesAreDropped(t *testing.T) {
	g, err := testGraph(3, 1, nil, func(b *builder) *gorgonia.Node {
		loss := crossEntropy(b)
		b.apply(device.ReLU, 0, b.params[0])
		return loss
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if count(p, device.ReLU) != 0 || count(p, device.SoftmaxCrossEntropy) != 1 {
		t.Errorf("want only the loss:\n%v", p)
	}
}

func TestCompileErrors(t *testing.T) {
	for name, c := range map[string]struct {
		loss func(b *builder) *gorgonia.Node
		want string
	}{
		"the backward pass needs a constant": {func(b *builder) *gorgonia.Node {
			return b.apply(device.Sigmoid, 0, b.param("x", 1, 1))
		}, "reads the constant 1"},
		"an operation of Gorgonia's own": {func(b *builder) *gorgonia.Node {
			return gorgonia.Must(gorgonia.Sub(crossEntropy(b), b.apply(device.HalfSquare, 1, b.params[0])))
		}, "no kernel implements"},
	} {
		b := newBuilder(nil)
		g := &Graph{name: "test", batch: 3, features: 1, builder: b}
		loss := c.loss(b)
		g.results = []result{{"loss", loss, 0}}
		if name == "the backward pass needs a constant" {
			g.grads = b.gradient(loss)
		}
		if p, err := g.Compile(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: plan %v, error %v, want it to say %q", name, p, err, c.want)
		}
	}
}
