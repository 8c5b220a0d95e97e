package model

import (
	"math"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
)

// dropoutNets are the networks that have dropout, with few parameters.
func dropoutNets(t *testing.T, p float64) map[string]*Network {
	t.Helper()
	nets := map[string]*Network{}
	for name, o := range map[string]Options{
		"mlp":      {Shape: []int{4, 4}, Classes: 3, Hidden: []int{9, 7}},
		"vgg11":    {Shape: []int{4, 4, 1}, Classes: 3},
		"gpt-nano": {Classes: 5, Transformer: Transformer{Layers: 1, Heads: 2, Width: 8, Block: 4}},
	} {
		o.Dropout = p
		net, err := Open(name, o)
		if err != nil {
			t.Fatal(err)
		}
		nets[name] = net
	}
	return nets
}

func dropoutBatch(n *Network, key uint64) device.Batch {
	b := device.Batch{X: round(random(2*n.Inputs(), 3)), Y: []int32{2, 0}, Key: key}
	if n.Tokens() {
		b = device.Batch{Tokens: []uint16{1, 2, 3, 4, 0, 1, 2, 2, 1}, At: []int64{0, 3}, Length: n.Inputs(), Key: key}
	}
	return b
}

// Training has as many dropouts as the network says, forward and backward, and graphs for
// evaluation have none.
func TestDropoutIsInTrainingOnly(t *testing.T) {
	forward := map[string]int{"mlp": 2, "vgg11": 2, "gpt-nano": 3}
	for name, net := range dropoutNets(t, 0.5) {
		for kind := range kinds {
			if net.Tokens() && kind == Predict || !net.Tokens() && kind == Next || strings.HasPrefix(kind.String(),
				"cont") {
				continue
			}
			p, err := net.Plan(2, kind)
			if err != nil {
				t.Fatal(name, kind, err)
			}
			want := 0
			if kind == Train || kind == Step {
				want = 2 * forward[name]
			}
			if got := count(p, device.Dropout); got != want {
				t.Errorf("%s to %v has %d dropouts, want %d", name, kind, got, want)
			}
		}
	}
}

// The gradient is a function of the key: equal keys give equal bits, other keys others, and the key
// 0 the gradient of the network without dropout. Gorgonia's machine has the same bits.
func TestDropoutKeys(t *testing.T) {
	plain := dropoutNets(t, 0)
	for name, net := range dropoutNets(t, 0.5) {
		x := net.Init(1)
		gradient := func(n *Network, key uint64) []float32 {
			g, _ := onDevice(t, mustPlan(t, n, 2, Train).Code(), x, dropoutBatch(n, key))
			return g
		}
		first := gradient(net, 1<<60+3)
		if !sameFloats(first, gradient(net, 1<<60+3)) || sameFloats(first, gradient(net, 4)) {
			t.Errorf("%s: the gradient is no function of the key", name)
		}
		if !sameFloats(gradient(net, 0), gradient(plain[name], 7)) {
			t.Errorf("%s: the key 0 has dropout", name)
		}
		g, err := net.Graph(2, Train, cpu.Call)
		if err != nil {
			t.Fatal(err)
		}
		tape, out := make([]float32, net.Dim()), make([]float64, 1)
		if err := g.Evaluate(x, tape, dropoutBatch(net, 1<<60+3), out); err != nil {
			t.Fatal(err)
		}
		if !sameFloats(first, tape) {
			t.Errorf("%s: Gorgonia's machine has another gradient", name)
		}
	}
}

func sameFloats(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// Recomputed blocks draw the same masks.
func TestDropoutOfRecomputedBlocks(t *testing.T) {
	var grads [2][]float32
	for i, r := range []Recompute{RecomputeNone, RecomputeBlocks} {
		net, err := Open("gpt-nano", Options{Classes: 5, Dropout: 0.4, Recompute: r,
			Transformer: Transformer{Layers: 3, Heads: 2, Width: 8, Block: 4}})
		if err != nil {
			t.Fatal(err)
		}
		grads[i], _ = onDevice(t, mustPlan(t, net, 2, Train).Code(), net.Init(1), dropoutBatch(net, 99))
	}
	if !sameFloats(grads[0], grads[1]) {
		t.Error("recomputation changes the gradient")
	}
}

func TestDropoutRefuses(t *testing.T) {
	images := []int{8, 8, 3}
	for want, c := range map[string]struct {
		name string
		o    Options
	}{
		"option Dropout is 1, want at least 0 and below 1": {"mlp", Options{Shape: images, Classes: 2,
			Hidden: []int{3}, Dropout: 1}},
		"option Dropout is -1": {"vgg11", Options{Shape: images, Classes: 2,
			Dropout: -1}},
		"option Dropout is NaN": {"gpt-nano", Options{Classes: 5, Dropout: math.NaN()}},
		"there is no hidden layer": {"mlp", Options{Shape: images, Classes: 2,
			Dropout: 0.5}},
		"0.5, but the network has none": {"gn-lenet", Options{Shape: images, Classes: 2,
			Dropout: 0.5}},
		"0.5, but residual networks have none": {"resnet20-gn", Options{Shape: images, Classes: 2,
			Dropout: 0.5}},
		"llama-nano: option Dropout is 0.5, but llama has none": {"llama-nano", Options{Classes: 5, Dropout: 0.5}},
	} {
		if _, err := Open(c.name, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
