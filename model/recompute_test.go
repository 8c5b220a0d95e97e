package model

import (
	"math"
	"testing"

	"fspda/cpu"
	"fspda/device"
)

// recomputing returns the network with recomputation of its blocks.
func recomputing(n *Network) *Network {
	again := *n
	again.recompute = true
	return &again
}

// Recomputation is bit-identical in gradient, loss and buffers.
func TestRecomputeChangesNoBit(t *testing.T) {
	dev := cpu.New()
	for _, net := range smallResNets(t) {
		const batch = 3
		b := device.Batch{X: round(random(batch*net.inputs, 61)), Y: randomLabels(batch, net.classes, 62)}
		var grads, buffers [2][]float32
		var losses [2]float64
		for i, n := range []*Network{net, recomputing(net)} {
			p := mustPlan(t, n, batch, Step)
			checkPlaces(t, n.name, p)
			x, g, moved := vectorOf(dev, round(smallParams(n))), dev.NewVector(n.Dim()), vectorOf(dev, n.InitBuffers())
			loss, err := NewEngine(n, dev).Step(g, x, moved, b)
			if err != nil {
				t.Fatal(err)
			}
			losses[i], grads[i], buffers[i] = loss, make([]float32, n.Dim()), make([]float32, n.buffers.dim)
			dev.Read(grads[i], g)
			dev.Read(buffers[i], moved)
		}
		if losses[0] != losses[1] {
			t.Errorf("%s: loss %v, recomputed %v", net.name, losses[0], losses[1])
		}
		for i := range grads[0] {
			if math.Float32bits(grads[0][i]) != math.Float32bits(grads[1][i]) {
				t.Fatalf("%s: derivative by parameter %d is %v, recomputed %v", net.name, i, grads[0][i], grads[1][i])
			}
		}
		for i := range buffers[0] {
			if buffers[0][i] != buffers[1][i] {
				t.Fatalf("%s: buffer %d is %v, recomputed %v", net.name, i, buffers[0][i], buffers[1][i])
			}
		}
	}
}

// Each block but the last runs its convolutions twice, and the running statistics move once.
func TestRecomputedCalls(t *testing.T) {
	net := resNetOf(t, ResNetOptions{Depth: 50, Height: 32, Width: 32})
	once, twice := mustPlan(t, net, 2, Step), mustPlan(t, recomputing(net), 2, Step)
	if a, b := count(once, device.Conv), count(twice, device.Conv); a != 53 || b != 2*53-3 {
		t.Errorf("%d convolutions, recomputed %d, want 53 and 103", a, b)
	}
	for _, k := range []device.Kernel{device.MoveAverage, device.ConvGradW, device.ConvGradX,
		device.BatchNormReLUGrad} {
		if a, b := count(once, k), count(twice, k); a != b {
			t.Errorf("%d calls of %s, recomputed %d", a, k, b)
		}
	}
	if a, b := mustPlan(t, net, 2, Predict), mustPlan(t, recomputing(net), 2,
		Predict); len(a.code.Calls) != len(b.code.Calls) {
		t.Error("a plan without gradient recomputes")
	}
}
