package cuda

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fspda/bench/measure"
	"fspda/cpu"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
)

// fakeCard is a fake GPU for the program's benchmarks. By its clock everything takes a millisecond.
func fakeCard(t *testing.T) measure.Card {
	d, _ := openFake(t, fakegpu.Options{}, false)
	bare := d.Raw()
	return measure.Card{What: d.Properties().Name, Device: d, Precision: "fp32", Time: bare.Time, Element: 4,
		Copy: func(bytes int) (float64, error) { return bare.CopyRate(min(bytes, 1<<16)) }}
}

// The numbers of a benchmark are consistent: times, rates and shares.
func TestBenchNetworkOnCard(t *testing.T) {
	card := fakeCard(t)
	net, err := model.Open("mlp", model.Options{Shape: []int{8, 8, 1}, Classes: 4, Hidden: []int{16}})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := net.Plan(8, model.Train)
	if err != nil {
		t.Fatal(err)
	}
	code := plan.Code()
	r, err := measure.CardNetwork(context.Background(), measure.CardNetworkOptions{Card: card, Code: code,
		Each: time.Millisecond, Load: card.Gradient(code, net.Init(1), 4)})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Fastest.Seconds(); r.Runs < 1 || math.Abs(r.Images*s/8-1) > 1e-9 ||
		math.Abs(r.Roofline*s*r.CopyRate*1e9/r.Bytes-1) > 1e-9 || r.Bytes < 4*float64(code.Dim) {
		t.Errorf("%+v", r)
	}
	if text := r.String(); !strings.Contains(text, "of the roofline") {
		t.Errorf("%s", text)
	}
}

// The rate of a language model is in tokens.
func TestBenchLanguageOnCard(t *testing.T) {
	card := fakeCard(t)
	net, err := model.Open("gpt-nano", model.Options{Classes: 7,
		Transformer: model.Transformer{Layers: 1, Heads: 2, Width: 8, Block: 5}})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := net.Plan(3, model.Train)
	if err != nil {
		t.Fatal(err)
	}
	code := plan.Code()
	r, err := measure.CardNetwork(context.Background(), measure.CardNetworkOptions{Card: card, Code: code,
		Each: time.Millisecond, Load: card.Gradient(code, net.Init(1), 7)})
	if err != nil || r.Runs < 1 || math.Abs(r.Tokens*r.Fastest.Seconds()/15-1) > 1e-9 ||
		!strings.Contains(r.String(), "  tokens     ") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBenchKernelsOnCard(t *testing.T) {
	card := fakeCard(t)
	card.Copy = func(int) (float64, error) { return 1, nil }
	score := &device.Call{Kernel: device.Score, Dims: []int{2, 3}}
	// labels are a space of their own
	if bound, err := card.Bind(score, [][]float32{{1, 2, 3, 3, 2, 1}, {2, 1}}, [][]float32{make([]float32, 3)},
		2); err != nil || bound.Run() != nil {
		t.Fatal(err, bound.Run())
	}
	conv := &device.Call{Kernel: device.Conv, Dims: []int{1, 3, 3, 4, 2, 3, 3, 1, 1}}
	if bound, err := card.Bind(conv, [][]float32{make([]float32, 36), make([]float32, 72)},
		[][]float32{make([]float32, 18)}, 2); err != nil || !strings.HasPrefix(bound.Route, "graph, engine ") {
		t.Errorf("a convolution goes by %q, %v", bound.Route, err)
	}
	r, err := measure.Kernels(context.Background(), measure.KernelsOptions{Device: card.Device,
		Kernels: device.Kernels(), Call: cpu.Call, Card: &card, Peak: card.Peak(16),
		Floats: func(n int) []float32 { return make([]float32, n) },
		Batch:  1, Each: time.Microsecond, Filter: "sgemm/linear 256×10×100,pool/avg-pool 7"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Card == "" || r.PeakGFLOPs <= 0 {
		t.Fatalf("%+v", r)
	}
	for _, row := range r.Rows {
		if row.Group == "masks" || row.Time <= 0 || row.Rate <= 0 || row.Limit <= 0 || row.Bandwidth != 0 ||
			row.Route != "" {
			t.Errorf("%+v", row)
		}
	}
}

// countingModel counts gradients that are not waited for at once.
type countingModel struct {
	*model.Engine
	n *atomic.Int64
}

func (b countingModel) StartGrad(dst, x, buffers device.Vector, batch device.Batch) func() (float64, error) {
	b.n.Add(1)
	return b.Engine.StartGrad(dst, x, buffers, batch)
}

func TestBenchStepOnCard(t *testing.T) {
	card := fakeCard(t)
	set := smallDigits(t, 60, 20)
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: []int{8}})
	if err != nil {
		t.Fatal(err)
	}
	m, c := model.NewEngine(net, card.Device), train.Default()
	c.Agents, c.Graph, c.Partition, c.Batch, c.Iterations, c.EvalPoints = 3, "ring", "shuffled", 5, 1e6, 1
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := net.Plan(c.Batch, model.Train)
	if err != nil {
		t.Fatal(err)
	}
	begun := countingModel{m, new(atomic.Int64)}
	r, err := measure.CardStep(context.Background(), measure.CardStepOptions{Card: card,
		Load:        card.Gradient(plan.Code(), net.Init(1), net.Classes()),
		StepOptions: measure.StepOptions{Setup: s, Device: card.Device, Model: begun, Each: 20 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if begun.n.Load() == 0 {
		t.Error("no gradient was started without waiting: training was not measured")
	}
	if math.Abs(r.PerSecond*r.Iteration.Seconds()-1) > 1e-9 || r.Gradient != time.Millisecond/5 || r.Exchange <= 0 ||
		r.Idle < 0 || r.Idle >= 1 || r.Images <= 0 {
		t.Errorf("%+v", r)
	}
	if text := r.String(); !strings.Contains(text, "3 agents × 5") {
		t.Errorf("%s", text)
	}
}
