package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/rng"
)

// smallTransformers are language models of every form, for windows of 5 tokens.
func smallTransformers(t testing.TB, decay float64) (all []*Network) {
	t.Helper()
	small := Transformer{Layers: 2, Heads: 2, Width: 8, Block: 6}
	for _, c := range []struct {
		name      string
		change    func(o *Transformer)
		recompute Recompute
	}{
		{"gpt-nano", func(*Transformer) {}, ""},
		{"gpt-nano", func(o *Transformer) { o.GELU, o.NoBias, o.Hidden = "erf", true, 11 }, ""},
		{"gpt-nano", func(*Transformer) {}, RecomputeBlocks},
		{"llama-nano", func(o *Transformer) { o.Hidden = 12 }, ""},
	} {
		o := small
		c.change(&o)
		n, err := Open(c.name, Options{Shape: []int{5}, Classes: 7, Transformer: o, Recompute: c.recompute,
			Loss: LossOptions{WeightDecay: decay, Decay: DecayWeights}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// randomWindows returns a batch of windows of random tokens.
func randomWindows(n *Network, batch int) device.Batch {
	s := rng.New(3, "model test")
	b := device.Batch{Tokens: make([]uint16, 40), Length: n.inputs}
	for i := range b.Tokens {
		b.Tokens[i] = uint16(s.IntN(n.classes))
	}
	for range batch {
		b.At = append(b.At, int64(s.IntN(len(b.Tokens)-n.inputs)))
	}
	return b
}

// transformerParams are initial parameters with norms and biases away from 1 and 0.
func transformerParams(n *Network) []float64 {
	x := random(n.Dim(), 71)
	for _, t := range n.layout.tensors {
		for i := range t.Size {
			at := &x[t.Offset+i]
			if *at *= 0.3; t.norm && t.start.scale == 1 {
				*at++
			}
		}
	}
	return x
}

// Every derivative of every tensor agrees with finite differences.
func TestTransformerGradient(t *testing.T) {
	for _, n := range smallTransformers(t, 0.1) {
		const batch = 2
		b := randomWindows(n, batch)
		labels := make([]float32, b.Targets())
		b.Labels(labels)
		y := make([]int32, len(labels))
		for i, v := range labels {
			y[i] = int32(v)
		}
		var x []float64
		for _, v := range b.Numbers(nil, n.inputs) {
			x = append(x, float64(v))
		}
		p := mustPlan(t, n, batch, Train)
		checkPlaces(t, n.Name(), p)
		checkGradient(t, p.Code(), transformerParams(n), x, y)
	}
}

// A plan on the host has the bits of Gorgonia's own machine, with and without fused kernels.
func TestTransformerIsItsReference(t *testing.T) {
	dev := cpu.New()
	for _, n := range smallTransformers(t, 0.1) {
		params := round(transformerParams(n))
		for _, kind := range []Kind{Train, Score, Next} {
			const batch = 3
			g, err := n.Graph(batch, kind, cpu.Call)
			if err != nil {
				t.Fatal(err)
			}
			var grad []float32
			if kind == Train {
				grad = make([]float32, n.Dim())
			}
			b, want := randomWindows(n, batch), make([]float64, len(g.results))
			if err := g.Evaluate(params, grad, b, want); err != nil {
				t.Fatal(err)
			}
			for _, fuse := range []bool{true, false} {
				p, err := g.compile(fuse)
				if err != nil {
					t.Fatal(err)
				}
				prog, err := dev.Load(p.Code())
				if err != nil {
					t.Fatal(err)
				}
				out, got := make([]float64, len(want)), make([]float32, len(grad))
				var to device.Vector
				if kind == Train {
					to = dev.Wrap(got)
				}
				if err := prog.Run(dev.Wrap(params), to, b, out); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(out, want) || !slices.Equal(got, grad) {
					t.Errorf("%s, %v, fused %v: other bits than Gorgonia's machine", n.name, kind, fuse)
				}
			}
		}
	}
}

// The kernels that a step of each form consists of.
func TestTransformerFusions(t *testing.T) {
	for i, want := range []string{
		"linear-gelu-tanh linear-grad-x-gelu-tanh add-layer-norm layer-norm-grad-add embed-grad-add",
		"product-gelu-erf linear-grad-x-gelu-erf add-layer-norm-plain layer-norm-plain-grad-add embed-grad-add",
		"linear-gelu-tanh", "token-embed-grad-add"} {
		p := mustPlan(t, smallTransformers(t, 0)[i], 2, Train)
		for k := range strings.FieldsSeq(want) {
			if !slices.ContainsFunc(p.Code().Calls, func(c device.Call) bool { return string(c.Kernel) == k }) {
				t.Errorf("no %s in\n%v", k, p)
			}
		}
	}
}

// The sizes of the named networks, and the operations of a step of gpt-nano.
func TestTransformerSizes(t *testing.T) {
	for _, c := range []struct {
		name       string
		noBias     bool
		vocabulary int
		want       int
	}{
		{"gpt-nano", false, 65, 809856}, {"gpt-nano", true, 65, 804096}, {"gpt-char", false, 65, 10770816},
		{"gpt-char", true, 65, 10745088}, {"gpt2", false, 50257, 124439808}, {"gpt2-medium", false, 50257, 354823168},
		{"llama-nano", false, 65, 861440},
	} {
		n, err := Open(c.name, Options{Classes: c.vocabulary, Transformer: Transformer{NoBias: c.noBias}})
		if err != nil {
			t.Fatal(err)
		}
		if n.Dim() != c.want {
			t.Errorf("%s without biases %v has %d parameters, want %d", c.name, c.noBias, n.Dim(), c.want)
		}
	}
	n, err := Open("gpt-nano", Options{Classes: 65})
	if err != nil {
		t.Fatal(err)
	}
	const m, c, v, layers, b, length = 768, 128, 65, 4, 12, 64
	want := 6*m*(12*layers*c*c+v*c) + 3*4*b*c*layers*length*(length+1)/2
	if got := mustPlan(t, n, b, Train).Code().FLOPs; got != float64(want) {
		t.Errorf("%v operations a step, want %v", got, want)
	}
}

// Initial numbers: those of GPT-2, with smaller matrices before residual sums.
func TestTransformerInit(t *testing.T) {
	n, err := Open("gpt-nano", Options{Classes: 65})
	if err != nil {
		t.Fatal(err)
	}
	x := n.Init(1)
	for name, want := range map[string]float64{"wte.weight": 0.02, "wpe.weight": 0.02, "h.1.attn.c_attn.weight": 0.02,
		"h.1.attn.c_proj.weight": 0.02 / math.Sqrt(8), "h.3.mlp.c_proj.weight": 0.02 / math.Sqrt(8),
		"h.2.mlp.c_fc.weight": 0.02, "h.0.attn.c_attn.bias": 0} {
		square := 0.0
		part := n.layout.View(x, name)
		for _, v := range part {
			square += float64(v) * float64(v)
		}
		if got := math.Sqrt(square / float64(len(part))); math.Abs(got-want) > 0.05*want {
			t.Errorf("%s has standard deviation %v, want %v", name, got, want)
		}
	}
	for _, v := range n.layout.View(x, "ln_f.weight") {
		if v != 1 {
			t.Fatalf("a norm starts with weight %v, want 1", v)
		}
	}
}

// Bad tokens and windows are errors, not panics.
func TestNextRefuses(t *testing.T) {
	n := smallTransformers(t, 0)[0]
	e := NewEngine(n, cpu.New())
	x := e.dev.NewVector(n.Dim())
	for want, tokens := range map[string][]uint16{
		"the next token of 0":       nil,
		"is 7, want 0 to 6":         {0, 7},
		"windows of 7 tokens, want": {0, 1, 2, 3, 4, 5, 6},
	} {
		if err := e.Next(make([]float64, 7), x, tokens); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
	if err := e.Next(make([]float64, 6), x, []uint16{1}); err == nil || !strings.Contains(err.Error(), "6 logits") {
		t.Errorf("error %v of too few logits", err)
	}
	if _, err := n.Plan(2, Predict); err == nil || !strings.Contains(err.Error(), "want kind next") {
		t.Errorf("error %v", err)
	}
}
