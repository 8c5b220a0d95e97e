package model

import (
	"fmt"
	"math"
	"os"
	"testing"

	"gorgonia.org/gorgonia"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/internal/rng"
)

// run64 executes code in float64, on memory initialized with NaN.
func run64(c *device.Code, params, x []float64, labels []int32) (results, grad []float64) {
	return run64Buffered(c, params, nil, 0, x, labels)
}

// run64Buffered is run64 for code that reads or moves buffers.
func run64Buffered(c *device.Code, params, buffers []float64, momentum float64, x []float64, labels []int32) (results,
	grad []float64) {
	y := make([]float64, len(labels))
	for i, l := range labels {
		y[i] = float64(l)
	}
	if c.Mixed { // the second class of an example is the class of the next
		y = nil
		for i, l := range labels {
			y = append(y, float64(l), float64(labels[(i+1)%len(labels)]), 0.3)
		}
	}
	spaces := map[device.Space][]float64{
		device.Params: params, device.Grads: nans(c.Dim), device.Arena: nans(
			c.Arena), device.Input: x, device.Labels: y,
		device.Buffers: buffers, device.Momentum: {momentum}, device.Key: {17, 0, 5, 0},
	}
	at := func(refs []device.Ref) (s [][]float64) {
		for _, r := range refs {
			s = append(s, spaces[r.Space][r.Off:r.Off+r.Len])
		}
		return s
	}
	for i := range c.Calls {
		call := &c.Calls[i]
		devicetest.Interpret(call, at(call.In), at(call.Out))
	}
	for _, r := range c.Results {
		results = append(results, spaces[device.Arena][r.Ref.Off])
	}
	return results, spaces[device.Grads]
}

func nans(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.NaN()
	}
	return x
}

// random returns normal numbers from a stream for this test.
func random(n int, key ...uint64) []float64 {
	s := rng.New(1, "model test", key...)
	x := make([]float64, n)
	for i := range x {
		x[i] = s.Norm()
	}
	return x
}

func randomLabels(n, classes int, key ...uint64) []int32 {
	s := rng.New(2, "model test", key...)
	y := make([]int32, n)
	for i := range y {
		y[i] = int32(s.IntN(classes))
	}
	return y
}

func round(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// checkGradient compares the gradient that code computes with central differences of its loss, both
// in float64. With h = 1e-5 the differences have an error of about h², 1e-10, plus 1e-16/h from
// rounding; 1e-7 of the scale allows for curvature.
func checkGradient(t *testing.T, c *device.Code, params, x []float64, labels []int32) {
	t.Helper()
	const h, tolerance = 1e-5, 1e-7
	_, grad := run64(c, params, x, labels)
	step := 1
	if len(grad) > 100 && os.Getenv("FSPDA_LONG") == "" {
		step = 3
	}
	for i := 0; i < len(grad); i += step {
		g := grad[i]
		keep := params[i]
		params[i] = keep + h
		up, _ := run64(c, params, x, labels)
		params[i] = keep - h
		down, _ := run64(c, params, x, labels)
		params[i] = keep
		want := (up[0] - down[0]) / (2 * h)
		if !(math.Abs(g-want) <= tolerance*(1+math.Abs(want))) { // written so that NaN fails
			t.Errorf("derivative by parameter %d: got %v, finite differences say %v", i, g, want)
		}
	}
}

// testGraph builds a differentiated graph of any loss, not only of networks.
func testGraph(batch, features int, host Host, loss func(b *builder) *gorgonia.Node) (g *Graph, err error) {
	b := newBuilder(host)
	defer b.rescue(&err)
	n := loss(b)
	g = &Graph{name: "test", batch: batch, features: features, builder: b, results: []result{{"loss", n, 0}}}
	g.grads = b.gradient(n)
	return g, nil
}

// nets are the networks of all whole-network tests.
func nets(t *testing.T) []*Network {
	t.Helper()
	var all []*Network
	for _, hidden := range [][]int{nil, {4}, {3, 5}, {1}, {6, 2, 3}} {
		for _, activation := range []string{"sigmoid", "relu"} {
			for _, decay := range []float64{0, 0.3} {
				net, err := MLP(MLPOptions{Inputs: 5, Classes: 3, Hidden: hidden, Activation: activation,
					WeightDecay: decay})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, net)
				if hidden == nil {
					break
				}
			}
		}
	}
	return all
}

func label(n *Network, batch int) string {
	return fmt.Sprintf("%s decay %v batch %d", n.name, n.loss.WeightDecay, batch)
}

var batches = []int{1, 7, 64}

// mustPlan compiles a plan or fails the test.
func mustPlan(t testing.TB, n *Network, batch int, kind Kind) *Plan {
	t.Helper()
	p, err := n.Plan(batch, kind)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
