package cuda

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/internal/testing/golden"
	"fspda/model"
	"fspda/train"
)

// Every kernel has a lowering.
func TestLowerings(t *testing.T) {
	for _, k := range device.Kernels() {
		if lowerings[k] == nil {
			t.Errorf("%s has no lowering", k)
		}
	}
}

// The kernels of language models agree with PyTorch in float64.
func TestGoldenLanguageKernels(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{}, true)
	golden.Kernels(t, func(k device.Kernel, attr float64, dims []int, in [][]float32, out ...int) [][]float32 {
		c := device.Call{Kernel: k, Dims: dims, Attr: attr}
		var params []float32
		for _, v := range in {
			c.In = append(c.In, device.Ref{Space: device.Params, Off: len(params), Len: len(v)})
			params = append(params, v...)
		}
		n := 0
		for _, size := range out {
			c.Out = append(c.Out, device.Ref{Space: device.Grads, Off: n, Len: size})
			n += size
		}
		dim := max(n, len(params))
		p, err := d.Load(&device.Code{Name: string(k), Batch: 1, Features: 1, Dim: dim, Gradient: true,
			Calls: []device.Call{c}})
		if err != nil {
			t.Fatal(err)
		}
		x, g, numbers := d.NewVector(dim), d.NewVector(dim), make([]float32, dim)
		copy(numbers, params)
		d.Write(x, numbers)
		if err := p.Run(x, g, device.Batch{X: []float32{0}, Y: []int32{0}}, nil); err != nil {
			t.Fatal(err)
		}
		d.Read(numbers, g)
		var results [][]float32
		for _, r := range c.Out {
			results = append(results, numbers[r.Off:][:r.Len])
		}
		return results
	})
}

// goldenNetwork is a network of the golden values.
type goldenNetwork struct {
	golden.Network
	AdamW *struct {
		LR          float64
		WeightDecay float64 `json:"weight_decay"`
		Betas       []float64
		Eps, Clip   float64
		Steps       int
		Losses      []float64
	}
}

func (g *goldenNetwork) open(t *testing.T) *model.Network {
	name := "gpt2"
	o := model.Transformer{Layers: g.Layers, Heads: g.Heads, Width: g.Width, Block: g.Block, GELU: g.GELU,
		NoBias: !g.Bias, Hidden: g.Hidden}
	if g.Arch == "llama" {
		name, o.GELU, o.NoBias = "llama-nano", "", false
	}
	n, err := model.Open(name, model.Options{Classes: g.Vocab, Transformer: o})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// params fills the parameters by the formula of the golden values.
func (g *goldenNetwork) params(n *model.Network) []float32 {
	x := make([]float32, n.Dim())
	for k, p := range n.Layout().Parts() {
		golden.FillTensor(x[p.Offset:][:p.Size], k, p.Name, p.Shape, g.Seed)
	}
	return x
}

// goldenBound is how far a precision may be off: the loss, each tensor of the gradient relative to
// its norm, and the losses of AdamW.
type goldenBound struct{ loss, gradient, trained float64 }

// The losses and gradients of five networks, and the losses of ten steps of AdamW, equal PyTorch's
// in float64. In 16 bits only the factors of products are rounded.
func TestGoldenLanguageModels(t *testing.T) {
	networks := map[string]*goldenNetwork{}
	golden.Section(t, "networks", &networks)
	if len(networks) < 5 {
		t.Fatalf("%d networks, want 5", len(networks))
	}
	for precision, bound := range map[Precision]goldenBound{FP32: {1e-6, 3e-6, 5e-6}, FP16: {1e-3, 4e-3, 4e-3},
		BF16: {2e-3, 4e-2, 2e-2}} {
		d, _ := openFake(t, fakegpu.Options{}, true, WithPrecision(precision))
		for name, g := range networks {
			few := name == "gpt" || name == "llama" || precision == FP32 && name != "gpt-nano"
			if !few && os.Getenv("FSPDA_LONG") == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s %s", precision, name), func(t *testing.T) { g.check(t, d, bound) })
		}
	}
}

func (g *goldenNetwork) check(t *testing.T, d *Device, bound goldenBound) {
	n := g.open(t)
	e, x, v := model.NewEngine(n, d), d.NewVector(n.Dim()), d.NewVector(n.Dim())
	d.Write(x, g.params(n))
	loss, err := e.Grad(v, x, g.Stream())
	if err != nil || !(math.Abs(loss-g.Loss) <= bound.loss*g.Loss) {
		t.Errorf("loss %.12v, want %.12v, error %v", loss, g.Loss, err)
	}
	grad := make([]float32, n.Dim())
	d.Read(grad, v)
	for _, p := range n.Layout().Parts() {
		g.checkTensor(t, p.Name, grad[p.Offset:][:p.Size], bound.gradient)
	}
	if len(g.GradFlat) > 0 {
		want := make([]float32, len(grad))
		for i, v := range g.GradFlat {
			want[i] = float32(v)
		}
		if off := distance(grad, want); !(off <= bound.gradient) {
			t.Errorf("the gradient is off by %v of its norm", off)
		}
	}
	sum, hits, hits5, err := e.Score(x, g.Stream())
	if rows := float64(len(g.Tokens) * g.Block); err != nil || !(math.Abs(sum/rows-g.Loss) <= bound.loss*g.Loss) ||
		hits > hits5 || hits5 > rows {
		t.Errorf("score of %v tokens: loss %v, %v and %v hits, error %v", rows, sum, hits, hits5, err)
	}
	if g.AdamW != nil {
		g.checkAdamW(t, d, e, x, bound.trained)
	}
}

func (g *goldenNetwork) checkTensor(t *testing.T, name string, grad []float32, bound float64) {
	want, ok := g.Tensors[name]
	if !ok {
		t.Errorf("there is no tensor %s", name)
		return
	}
	limit, square := bound*want.Grad.Norm, 0.0
	for _, v := range grad {
		square += float64(v) * float64(v)
	}
	off := math.Abs(math.Sqrt(square) - want.Grad.Norm)
	for i, v := range want.Grad.First8 {
		if i < len(grad) {
			off = max(off, math.Abs(float64(grad[i])-v))
		}
	}
	for i, v := range want.Grad.Last4 {
		off = max(off, math.Abs(float64(grad[len(grad)-len(want.Grad.Last4)+i])-v))
	}
	if !(off <= limit) {
		t.Errorf("the gradient of %s is off by %v, want %v at most", name, off, limit)
	}
}

// checkAdamW compares the losses of steps of AdamW on one batch.
func (g *goldenNetwork) checkAdamW(t *testing.T, d *Device, e *model.Engine, x device.Vector, bound float64) {
	a, dim := g.AdamW, e.Dim()
	u, m, v := d.NewVector(dim), d.NewVector(dim), d.NewVector(dim)
	decayed, numbers := d.NewVector(dim), make([]float32, dim)
	steps := a.Steps
	if d.precision != FP32 && os.Getenv("FSPDA_LONG") == "" {
		steps = 3
	}
	for k := range steps + 1 {
		loss, err := e.Grad(u, x, g.Stream())
		if err != nil || !(math.Abs(loss-a.Losses[k]) <= bound*a.Losses[k]) {
			t.Errorf("loss %.9v before step %d of AdamW, want %.9v, error %v", loss, k, a.Losses[k], err)
		}
		d.Do(device.Combine(u, device.Term{A: min(1, a.Clip/(math.Sqrt(device.InnerProduct(d, u, u))+1e-6)), V: u}))
		d.Read(numbers, x)
		for _, p := range e.Layout().Tensors() {
			for i := range p.Size {
				if numbers[p.Offset+i] *= float32(a.WeightDecay); len(p.Shape) == 1 {
					numbers[p.Offset+i] = 0
				}
			}
		}
		d.Write(decayed, numbers)
		b1, b2, power := a.Betas[0], a.Betas[1], float64(k+1)
		d.Do(device.AdamW(device.Adam{Beta1: b1, Rest1: 1 - b1, Beta2: b2, Rest2: 1 - b2,
			Scale1: 1 / (1 - math.Pow(b1, power)), Scale2: 1 / math.Sqrt(1-math.Pow(b2, power)), Eps: a.Eps},
			u, m, v, x))
		d.Do(device.Combine(x, device.Term{A: 1, V: x}, device.Term{A: -a.LR, V: u}, device.Term{A: -a.LR, V: decayed}))
	}
}

// Small GPTs whose sizes are no multiples of anything train on the GPU as on the CPU: the same
// losses and models up to rounding, and the same bits twice.
func TestTrainLanguageModels(t *testing.T) {
	set, err := data.Open("synthetic-text", data.OpenOptions{TrainSize: 2000, TestSize: 60, Window: 9})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]model.Transformer{
		"gpt-nano":   {Layers: 2, Heads: 3, Width: 21, Block: 9},
		"llama-nano": {Layers: 2, Heads: 2, Width: 20, Block: 9, Hidden: 23},
	} {
		net, err := model.Open(name, model.Options{Classes: set.Classes, Transformer: o})
		if err != nil {
			t.Fatal(err)
		}
		d, m := openFake(t, fakegpu.Options{}, false)
		want, got := trainText(t, set, net, cpu.New()), trainText(t, set, net, d)
		if off := distance(got.Mean, want.Mean); !(off <= 1e-4) {
			t.Errorf("%s: the model differs by %.2g of its length", name, off)
		}
		for i, row := range want.Rows {
			if g, w := float64(got.Rows[i].TestLossMean), float64(row.TestLossMean); !(math.Abs(g-w) <= 1e-4*w) {
				t.Errorf("%s: loss %v in row %d, want %v", name, g, i, w)
			}
		}
		if moved := distance(want.Mean, net.Init(train.Default().Seed)); !(moved > 1e-2) {
			t.Errorf("%s: the training moves the model by %.2g of its length", name, moved)
		}
		if name == "gpt-nano" && !slices.Equal(got.Mean, trainText(t, set, net, d).Mean) {
			t.Errorf("%s: a second training has other bits", name)
		}
		if m.Count("GraphLaunch") == 0 {
			t.Errorf("%s: no graph was launched", name)
		}
	}
}

// trainText trains two agents for a few iterations.
func trainText(t *testing.T, set *data.Set, net *model.Network, d device.Device) *train.Result {
	t.Helper()
	c := train.Default()
	c.Agents, c.Graph, c.Partition, c.Batch, c.Iterations, c.EvalPoints, c.Alpha = 2, "complete", "contiguous", 3, 5, 2,
		3e-3
	c.DataTrain, c.DataTest, c.Checkpoint, c.Metrics, c.Optimizer, c.ClipNorm = 2000, 60, 0, "test", "adamw", 1
	engine := model.NewEngine(net, d)
	setup, err := c.Resolve(set, engine)
	if err != nil {
		t.Fatal(err)
	}
	r, err := train.Run(t.Context(), setup, train.Options{Device: d, Model: engine, NoReport: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Numbers that are no tokens are refused before they reach the GPU.
func TestNumbersAreTokens(t *testing.T) {
	net, err := model.Open("gpt-nano", model.Options{Classes: 5,
		Transformer: model.Transformer{Layers: 1, Heads: 1, Width: 4, Block: 3}})
	if err != nil {
		t.Fatal(err)
	}
	d, _ := openFake(t, fakegpu.Options{}, true)
	e, x, g := model.NewEngine(net, d), d.NewVector(net.Dim()), d.NewVector(net.Dim())
	for _, bad := range []float32{5, -1, 1.5, float32(math.NaN()), float32(math.Inf(1))} {
		b := device.Batch{X: []float32{0, bad, 4}, Y: []int32{1, 2, 3}, Length: 3}
		if _, err := e.Grad(g, x, b); err == nil || !strings.Contains(err.Error(), "token of row 1 is ") ||
			!strings.Contains(err.Error(), "0 to 4") {
			t.Errorf("%v as a token: %v", bad, err)
		}
	}
	if _, err := e.Grad(g, x, device.Batch{X: []float32{0, 2, 4}, Y: []int32{1, 2, 3}, Length: 3}); err != nil {
		t.Error(err)
	}
}

// Agents with a language model take turns on a GPU. From the third gradient of each on, a gradient is
// one launch of the graph that was captured for this agent, two copies of its batch and one of its
// results, however many kernels it has.
func TestLaunchesOfLanguageModels(t *testing.T) {
	net, err := model.Open("gpt-nano", model.Options{Classes: 11,
		Transformer: model.Transformer{Layers: 2, Heads: 2, Width: 16, Block: 6}})
	if err != nil {
		t.Fatal(err)
	}
	b := device.Batch{Length: 6}
	for i := range 12 {
		b.X, b.Y = append(b.X, float32(i%11)), append(b.Y, int32(i*5%11))
	}
	const agents, rounds = 3, 2
	for _, precision := range []Precision{FP32, BF16} {
		d, m := openFake(t, fakegpu.Options{}, false, WithPrecision(precision))
		e := model.NewEngine(net, d)
		var x, g []device.Vector
		for a := range agents {
			x, g = append(x, d.NewVector(net.Dim())), append(g, d.NewVector(net.Dim()))
			d.Write(x[a], net.Init(uint64(a+1)))
		}
		round := func() {
			for a := range agents {
				if _, err := e.Grad(g[a], x[a], b); err != nil {
					t.Fatal(err)
				}
			}
		}
		round()
		round()
		want := map[string]int{"GraphLaunch": 1, "MemcpyHtoD": 2, "MemcpyDtoH": 1, "LaunchKernel": 0,
			"LaunchCooperative": 0, "GraphInstantiate": 0}
		before := map[string]int{}
		for call := range want {
			before[call] = m.Count(call)
		}
		for range rounds {
			round()
		}
		for call, each := range want {
			if n := m.Count(call) - before[call]; n != each*agents*rounds {
				t.Errorf("%s: %d calls of %s in %d gradients, want %d each", precision, n, call, agents*rounds, each)
			}
		}
		if kernels := before["LaunchKernel"]; kernels < 2*agents*20 {
			t.Errorf("%s: %d kernels in the first two gradients of each agent", precision, kernels)
		}
	}
}
