package model

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"fspda/cpu"
	"fspda/device"
)

// resnetGolden is testdata/resnet50/golden.json: see its README.
type resnetGolden struct {
	Side, Batch      int
	Labels           []int32
	Smoothing        float64
	Loss             float64
	SmoothLoss       float64 `json:"smooth_loss"`
	Logits           []float64
	Evaluated        []float64
	LogitsFloat32    float64 `json:"logits_float32"`
	EvaluatedFloat32 float64 `json:"evaluated_float32"`
	Grads            map[string]goldenTensor
	SmoothNorms      []float64 `json:"smooth_norms"`
	Buffers          map[string]goldenTensor
	Shapes           map[string][]int
}

type goldenTensor struct {
	Norm    float64
	Samples []float64
	Float32 float64 // error of PyTorch in float32, relative to Norm
}

func readGolden(t *testing.T) *resnetGolden {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "resnet50", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	g := new(resnetGolden)
	if err := json.Unmarshal(text, g); err != nil {
		t.Fatal(err)
	}
	return g
}

// goldenFormula fills x with the numbers of tensor i, as make_golden.py does.
func goldenFormula(x []float32, i int, scale, shift float32) {
	for j := range x {
		z := (uint64(j) + uint64(i+1)<<32) * 0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		z ^= z >> 31
		u := float32(z>>40)*0x1p-23 - 1
		x[j] = float32(u*scale) + shift
	}
}

func goldenParams(n *Network) []float32 {
	x := make([]float32, n.Dim())
	for i, tensor := range n.layout.tensors {
		scale, shift := float32(0.1), float32(0)
		switch s := tensor.Shape; {
		case len(s) == 4:
			scale = float32(math.Sqrt(6 / float64(s[0]*s[1]*s[2])))
		case len(s) == 2, tensor.Name == "fc.bias":
			scale = 0.02
		case tensor.Name[len(tensor.Name)-6:] == "weight":
			shift = 1
		}
		goldenFormula(x[tensor.Offset:tensor.Offset+tensor.Size], i, scale, shift)
	}
	return x
}

func goldenBatch(g *resnetGolden) device.Batch {
	b := device.Batch{X: make([]float32, g.Batch*g.Side*g.Side*3), Y: g.Labels}
	goldenFormula(b.X, 1000, 1.7, 0)
	return b
}

// goldenPlan is a training step with the loss and the logits as results.
func goldenPlan(t *testing.T, n *Network, batch int, o LossOptions) *Plan {
	t.Helper()
	var g *Graph
	err := func() (err error) {
		b := newBuilder(nil)
		defer b.rescue(&err)
		b.kind = Step
		x := b.input(device.Input, append([]int{batch}, n.image...)...)
		logits := n.forward(b, x)
		loss := b.loss(logits, b.input(device.Labels, batch), o)
		g = &Graph{name: n.name, kind: Step, batch: batch, features: n.inputs, builder: b}
		g.results = []result{{"loss", loss, 0}}
		for i := range batch * n.classes {
			g.results = append(g.results, result{"logit", logits, i})
		}
		g.grads = b.gradient(loss)
		g.updates = b.updates
		return nil
	}()
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// furthest returns the largest distance of two slices.
func furthest(got, want []float64) float64 {
	most := 0.0
	for i := range want {
		if d := math.Abs(got[i] - want[i]); d > most || d != d {
			most = d
		}
	}
	return most
}

// checkTensors compares the tensors of a flat vector with their norms and samples, each within a
// relative tolerance per tensor.
func checkTensors(t *testing.T, l *Layout, flat []float64, want map[string]goldenTensor, norm,
	sample func(goldenTensor) float64) {
	t.Helper()
	if len(want) != len(l.tensors) {
		t.Errorf("%d golden tensors for %d", len(want), len(l.tensors))
	}
	for _, tensor := range l.tensors {
		w, v := want[tensor.Name], flat[tensor.Offset:tensor.Offset+tensor.Size]
		squares := 0.0
		for _, x := range v {
			squares += x * x
		}
		if got := math.Sqrt(squares); !(math.Abs(got/w.Norm-1) <= norm(w)) {
			t.Errorf("%s has the norm %v, want %v within %.2g of it", tensor.Name, got, w.Norm, norm(w))
		}
		n := len(w.Samples)
		typical := w.Norm / math.Sqrt(float64(len(v)))
		for k, x := range w.Samples {
			if got := v[len(v)*k/n+len(v)/n/3]; !(math.Abs(got-x) <= sample(w)*typical) {
				t.Errorf("%s: sample %d is %v, want %v within %.2g", tensor.Name, k, got, x, sample(w)*typical)
			}
		}
	}
}

func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// goldenNet is ResNet-50 for 1000 classes, with the shapes of torchvision.
func goldenNet(t *testing.T, g *resnetGolden) *Network {
	t.Helper()
	net := resNetOf(t, ResNetOptions{Depth: 50, Height: g.Side, Width: g.Side, Classes: 1000})
	for _, tensor := range net.layout.tensors {
		got, want := tensor.Shape, g.Shapes[tensor.Name]
		if tensor.Axes == OHWI {
			got = []int{got[0], got[3], got[1], got[2]}
		}
		if len(got) != len(want) {
			t.Fatalf("%s has shape %v, want %v", tensor.Name, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s has shape %v, want %v", tensor.Name, got, want)
			}
		}
	}
	return net
}

// ResNet-50 on the host has an error relative to PyTorch in float64 of at most a few times that of
// PyTorch in float32.
func TestResNet50IsTorchvision(t *testing.T) {
	g := readGolden(t)
	net, dev := goldenNet(t, g), cpu.New()
	program, err := dev.Load(goldenPlan(t, net, g.Batch, LossOptions{}).Code())
	if err != nil {
		t.Fatal(err)
	}
	x, grad, buffers := vectorOf(dev, goldenParams(net)), dev.NewVector(net.Dim()), vectorOf(dev, net.InitBuffers())
	out := make([]float64, 1+g.Batch*net.classes)
	if err := program.RunBuffered(x, grad, buffers, stepMomentum, goldenBatch(g), out); err != nil {
		t.Fatal(err)
	}
	if d := furthest(out[1:], g.Logits); !(d <= 3*g.LogitsFloat32) {
		t.Errorf("logits are off by %.2g, PyTorch's in float32 by %.2g", d, g.LogitsFloat32)
	}
	if d := math.Abs(out[0] - g.Loss); !(d <= 3*g.LogitsFloat32) {
		t.Errorf("loss %v, want %v", out[0], g.Loss)
	}
	few := func(w goldenTensor) float64 { return 1e-6 + 4*w.Float32 }
	many := func(w goldenTensor) float64 { return 1e-5 + 40*w.Float32 }
	host := make([]float32, net.Dim())
	dev.Read(host, grad)
	checkTensors(t, net.layout, widened(host), g.Grads, few, many)
	host = make([]float32, net.buffers.dim)
	dev.Read(host, buffers)
	checkTensors(t, net.buffers, widened(host), g.Buffers, few, many)
	evaluated := make([]float64, g.Batch*net.classes)
	if err := NewEngine(net, dev).Predict(evaluated, x, buffers, goldenBatch(g)); err != nil {
		t.Fatal(err)
	}
	if d := furthest(evaluated, g.Evaluated); !(d <= 4*g.EvaluatedFloat32) {
		t.Errorf("logits in evaluation are off by %.2g, PyTorch's in float32 by %.2g", d, g.EvaluatedFloat32)
	}
}

// checkSmooth compares loss and gradient norms with smoothed labels, within a relative tolerance
// per tensor.
func checkSmooth(t *testing.T, g *resnetGolden, l *Layout, loss float64, grad []float64, lossTolerance float64,
	tolerance func(goldenTensor) float64) {
	t.Helper()
	if d := math.Abs(loss - g.SmoothLoss); !(d <= lossTolerance) {
		t.Errorf("smoothed loss %v, want %v", loss, g.SmoothLoss)
	}
	for i, tensor := range l.tensors {
		squares := 0.0
		for _, x := range grad[tensor.Offset : tensor.Offset+tensor.Size] {
			squares += x * x
		}
		got, limit := math.Sqrt(squares), tolerance(g.Grads[tensor.Name])
		if !(math.Abs(got/g.SmoothNorms[i]-1) <= limit) {
			t.Errorf("%s has the norm %v with smoothed labels, want %v within %.2g of it", tensor.Name, got,
				g.SmoothNorms[i], limit)
		}
	}
}

// The same with smoothed labels.
func TestResNet50SmoothsAsPyTorch(t *testing.T) {
	g := readGolden(t)
	net, dev := goldenNet(t, g), cpu.New()
	program, err := dev.Load(goldenPlan(t, net, g.Batch, LossOptions{LabelSmoothing: g.Smoothing}).Code())
	if err != nil {
		t.Fatal(err)
	}
	grad, buffers, out := dev.NewVector(net.Dim()), vectorOf(dev, net.InitBuffers()), make([]float64,
		1+g.Batch*net.classes)
	if err := program.RunBuffered(vectorOf(dev, goldenParams(net)), grad, buffers, stepMomentum, goldenBatch(g),
		out); err != nil {
		t.Fatal(err)
	}
	host := make([]float32, net.Dim())
	dev.Read(host, grad)
	checkSmooth(t, g, net.layout, out[0], widened(host), 3*g.LogitsFloat32,
		func(w goldenTensor) float64 { return 1e-6 + 4*w.Float32 })
}

// In float64 the plan agrees with PyTorch to nine digits.
func TestResNet50IsTorchvisionExactly(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes half a minute: set FSPDA_LONG=1")
	}
	g := readGolden(t)
	net := goldenNet(t, g)
	buffers, images := widened(net.InitBuffers()), widened(goldenBatch(g).X)
	params := widened(goldenParams(net))
	out, grad := run64Buffered(goldenPlan(t, net, g.Batch, LossOptions{}).Code(), params, buffers, 0.1, images,
		g.Labels)
	if d := furthest(out[1:], g.Logits); !(d <= 1e-8) {
		t.Errorf("logits are off by %.2g", d)
	}
	if d := math.Abs(out[0] - g.Loss); !(d <= 1e-12) {
		t.Errorf("loss %v, want %v", out[0], g.Loss)
	}
	digits := func(goldenTensor) float64 { return 1e-8 }
	checkTensors(t, net.layout, grad, g.Grads, digits, digits)
	checkTensors(t, net.buffers, buffers, g.Buffers, digits, digits)
	smooth, smoothGrad := run64Buffered(goldenPlan(t, net, g.Batch, LossOptions{LabelSmoothing: g.Smoothing}).Code(),
		params, widened(net.InitBuffers()), 0.1, images, g.Labels)
	checkSmooth(t, g, net.layout, smooth[0], smoothGrad, 1e-12, digits)
	evaluated, _ := run64Buffered(mustPlan(t, net, g.Batch, Predict).Code(), params, buffers, 0, images, nil)
	if d := furthest(evaluated, g.Evaluated); !(d <= 1e-8) {
		t.Errorf("logits in evaluation are off by %.2g", d)
	}
}
