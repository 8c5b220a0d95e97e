package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"fspda/cpu"
	"fspda/device"
)

// onDevice runs a plan on the host device twice, so that stale contents of the arena would show.
func onDevice(t *testing.T, c *device.Code, params []float32, b device.Batch) (grad []float32, out []float64) {
	t.Helper()
	dev := cpu.New()
	program, err := dev.Load(c)
	if err != nil {
		t.Fatal(err)
	}
	p := dev.NewVector(len(params))
	dev.Write(p, params)
	out = make([]float64, len(c.Results))
	var g device.Vector
	if c.Gradient {
		g = dev.NewVector(c.Dim)
		grad = make([]float32, c.Dim)
	}
	for range 2 {
		if c.Gradient {
			for i := range grad {
				grad[i] = float32(math.NaN())
			}
			dev.Write(g, grad)
		}
		if err := program.Run(p, g, b, out); err != nil {
			t.Fatal(err)
		}
	}
	if c.Gradient {
		dev.Read(grad, g)
	}
	return grad, out
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: element %d is %v, Gorgonia's machine says %v", what, i, got[i], want[i])
			return
		}
	}
}

// onHost runs the calls of a plan one by one with a Host.
func onHost(t *testing.T, c *device.Code, host Host, params []float32, b device.Batch) (grad []float32, out []float64) {
	t.Helper()
	labels := make([]float32, c.LabelNumbers())
	b.Labels(labels)
	key := make([]float32, 4)
	b.KeyNumbers(key)
	spaces := map[device.Space][]float32{
		device.Key:    key,
		device.Params: params, device.Grads: round(nans(c.Dim)), device.Arena: round(
			nans(c.Arena)), device.Input: b.X, device.Labels: labels,
	}
	at := func(refs []device.Ref) (s [][]float32) {
		for _, r := range refs {
			s = append(s, spaces[r.Space][r.Off:r.Off+r.Len])
		}
		return s
	}
	for i := range c.Calls {
		call := &c.Calls[i]
		if err := host(call, at(call.In), at(call.Out)); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range c.Results {
		out = append(out, float64(spaces[device.Arena][r.Ref.Off]))
	}
	if c.Gradient {
		grad = spaces[device.Grads]
	}
	return grad, out
}

// compare compares results and gradient with those of Gorgonia's machine.
func compare(t *testing.T, what string, g *Graph, params []float32, b device.Batch, grad []float32, out []float64) {
	t.Helper()
	wantGrad, wantOut := make([]float32, len(grad)), make([]float64, len(out))
	if err := g.Evaluate(params, wantGrad, b, wantOut); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	sameBits(t, what+": gradient", grad, wantGrad)
	sameBits(t, what+": results", round(out), round(wantOut))
	for i, v := range out {
		if v != float64(float32(v)) || math.IsNaN(v) {
			t.Errorf("%s: result %d is %v, want a float32", what, i, v)
		}
	}
}

// The calls of a plan and the same graph on Gorgonia's TapeMachine agree in every bit of results
// and gradient.
func TestPlanIsTheGraphBitForBit(t *testing.T) {
	for _, net := range nets(t) {
		for _, batch := range batches {
			for _, kind := range []Kind{Train, Score} {
				g, err := net.Graph(batch, kind, cpu.Call)
				if err != nil {
					t.Fatal(err)
				}
				b := device.Batch{X: round(random(batch*net.inputs, 9)), Y: randomLabels(batch, net.classes, 10)}
				params := round(random(net.Dim(), 11))
				grad, out := onHost(t, mustPlan(t, net, batch, kind).Code(), cpu.Call, params, b)
				compare(t, label(net, batch)+" "+kind.String(), g, params, b, grad, out)
			}
		}
	}
}

// The same for expressions that no network here contains: values of several uses, sums of sums,
// gradients that meet.
func TestExpressionsAreTheGraphBitForBit(t *testing.T) {
	for name, c := range opCases {
		g, err := testGraph(3, 1, cpu.Call, func(b *builder) *gorgonia.Node {
			return b.apply(device.HalfSquare, 1.5, c.build(b))
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := g.Compile()
		if err != nil {
			t.Fatal(err)
		}
		params, b := round(random(p.Code().Dim, 14)), device.Batch{X: []float32{1, 2, 3}, Y: []int32{1, 0, 3}}
		grad, out := onHost(t, p.Code(), cpu.Call, params, b)
		compare(t, name, g, params, b, grad, out)
	}
}

// The loss of examples with two classes is the same on Gorgonia's machine, and between the losses of
// both classes; an example whose first class has all weight has the bits of one without a second.
func TestMixedClasses(t *testing.T) {
	for _, smoothing := range []float64{0, 0.1} {
		plain, err := MLP(MLPOptions{Inputs: 21, Hidden: []int{13}, Classes: 5, WeightDecay: 0.1,
			LabelSmoothing: smoothing})
		if err != nil {
			t.Fatal(err)
		}
		net, err := plain.WithMixed()
		if err != nil || !net.mixed || plain.mixed {
			t.Fatalf("WithMixed: %v", err)
		}
		const batch = 7
		b := device.Batch{X: round(random(batch*net.inputs, 12)), Y: randomLabels(batch, net.classes, 13)}
		params := net.Init(1)
		run := func(net *Network, y []int32, weights ...float32) ([]float32, []float64) {
			one := b
			one.Y = y
			for i, w := range weights {
				one.Mix = append(one.Mix, device.Mix{Partner: b.Y[(i+1)%batch], Weight: w})
			}
			g, err := net.Graph(batch, Train, cpu.Call)
			if err != nil {
				t.Fatal(err)
			}
			grad, out := onDevice(t, mustPlan(t, net, batch, Train).Code(), params, one)
			compare(t, net.Name(), g, params, one, grad, out)
			return grad, out
		}
		same := slices.Repeat([]float32{1}, batch)
		wantGrad, want := run(plain, b.Y)
		for _, weights := range [][]float32{nil, same} {
			grad, out := run(net, b.Y, weights...)
			sameBits(t, "gradient without a second class", grad, wantGrad)
			sameBits(t, "loss without a second class", round(out), round(want))
		}
		other := append(slices.Clone(b.Y[1:]), b.Y[0])
		secondGrad, second := run(plain, other)
		grad, out := run(net, b.Y, slices.Repeat([]float32{0.25}, batch)...)
		if mean := 0.25*want[0] + 0.75*second[0]; !(math.Abs(out[0]-mean) < 1e-6) {
			t.Errorf("loss %v, want the mean of both classes' losses, %v", out[0], mean)
		}
		for i, v := range grad {
			if mean := 0.25*float64(wantGrad[i]) + 0.75*float64(secondGrad[i]); !(math.Abs(float64(v)-mean) < 1e-6) {
				t.Errorf("gradient %d is %v, want the mean of both classes' gradients, %v", i, v, mean)
				break
			}
		}
	}
	words, err := Open("gpt-nano", Options{Shape: []int{8}, Classes: 11})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := words.WithMixed(); err == nil {
		t.Error("a language model takes examples of two classes")
	}
}

// A loaded program agrees in every bit with Gorgonia's machine, although its tensors have other
// addresses.
func TestProgramIsTheGraphBitForBit(t *testing.T) {
	for _, o := range []MLPOptions{
		{Inputs: 784, Hidden: []int{100}, Classes: 10, WeightDecay: 1e-4},
		{Inputs: 19, Hidden: []int{7, 5}, Classes: 11, Activation: "relu", WeightDecay: 0.3},
		{Inputs: 21, Hidden: []int{13}, Classes: 3},
		{Inputs: 16, Classes: 8, WeightDecay: 0.1},
	} {
		net, err := MLP(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range batches {
			for _, kind := range []Kind{Train, Score} {
				g, err := net.Graph(batch, kind, cpu.Call)
				if err != nil {
					t.Fatal(err)
				}
				b := device.Batch{X: round(random(batch*net.inputs, 12)), Y: randomLabels(batch, net.classes, 13)}
				params := net.Init(1)
				grad, out := onDevice(t, mustPlan(t, net, batch, kind).Code(), params, b)
				compare(t, label(net, batch)+" "+kind.String(), g, params, b, grad, out)
			}
		}
	}
}

func TestEvaluateErrors(t *testing.T) {
	net := mnist(t)
	g, err := net.Graph(2, Train, nil)
	if err != nil {
		t.Fatal(err)
	}
	params, grad := make([]float32, net.Dim()), make([]float32, net.Dim())
	batch := device.Batch{X: make([]float32, 2*784), Y: make([]int32, 2)}
	for _, c := range []struct {
		params, grad []float32
		batch        device.Batch
		results      int
		want         string
	}{
		{params[1:], grad, batch, 1, "79509 parameters, want 79510"},
		{params, nil, batch, 1, "gradient vector of length 0, want 79510"},
		{params, grad, device.Batch{X: batch.X[1:], Y: batch.Y}, 1, "batch has 1567 numbers"},
		{params, grad, device.Batch{X: batch.X, Y: batch.Y[1:]}, 1, "batch of 1 examples"},
		{params, grad, batch, 2, "out has length 2, want 1"},
		{params, grad, batch, 1, "built without a Host"},
	} {
		err := g.Evaluate(c.params, c.grad, c.batch, make([]float64, c.results))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want it to say %q", err, c.want)
		}
	}
}

// A bad label is an error of the kernel, with the full context.
func TestEvaluatePassesErrorsOn(t *testing.T) {
	net := nets(t)[0]
	g, err := net.Graph(1, Train, cpu.Call)
	if err != nil {
		t.Fatal(err)
	}
	err = g.Evaluate(net.Init(1), make([]float32, net.Dim()), device.Batch{X: make([]float32, 5), Y: []int32{3}},
		make([]float64, 1))
	if err == nil || !strings.Contains(err.Error(), "softmax-cross-entropy of layer loss") {
		t.Errorf("error %v", err)
	}
}

func TestExprIsTheGraph(t *testing.T) {
	g, err := mnist(t).Graph(2, Train, nil)
	if err != nil {
		t.Fatal(err)
	}
	if dot := g.builder.graph.ToDot(); !strings.Contains(dot, "fc2.weight") {
		t.Error("the drawing of the graph does not show fc2.weight")
	}
}
