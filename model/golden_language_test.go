package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/testing/golden"
)

// goldenNetwork is a network of the golden values, which PyTorch computed in float64.
type goldenNetwork struct {
	golden.Network
	Parameters int
	Logits     json.RawMessage // a list, for small networks
	AdamW      *goldenAdamW
	Greedy     *goldenGreedy `json:"greedy_after_adamw"`
}

// filledParams fills the parameters of a network by the formula of the golden values.
func filledParams(n *Network, seed int) []float32 {
	x := make([]float32, n.Dim())
	for k, t := range n.layout.Parts() {
		golden.FillTensor(x[t.Offset:][:t.Size], k, t.Name, t.Shape, seed)
	}
	return x
}

func (g *goldenNetwork) open(t testing.TB) *Network {
	t.Helper()
	name := "gpt2"
	o := Transformer{Layers: g.Layers, Heads: g.Heads, Width: g.Width, Block: g.Block, GELU: g.GELU, NoBias: !g.Bias,
		Hidden: g.Hidden}
	if g.Arch == "llama" {
		name, o.GELU, o.NoBias = "llama-nano", "", false
	}
	n, err := Open(name, Options{Classes: g.Vocab, Transformer: o})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The tokens, losses, gradients and logits of five networks are those of PyTorch in float64.
func TestGoldenLanguageModels(t *testing.T) {
	networks := map[string]*goldenNetwork{}
	golden.Section(t, "networks", &networks)
	if len(networks) < 5 {
		t.Fatalf("%d networks, want 5", len(networks))
	}
	for name, g := range networks {
		t.Run(name, func(t *testing.T) { g.check(t) })
	}
}

func (g *goldenNetwork) check(t *testing.T) {
	n := g.open(t)
	if n.Dim() != g.Parameters {
		t.Errorf("%d parameters, want %d", n.Dim(), g.Parameters)
	}
	for b, w := range g.Tokens {
		for s, token := range w {
			if want := golden.Fill(1000+b, s, g.Seed) % int64(g.Vocab); int64(token) != want {
				t.Errorf("token %d of window %d is %d, the formula says %d", s, b, token, want)
			}
		}
	}
	dev := cpu.New()
	params := filledParams(n, g.Seed)
	x, grad := dev.Wrap(params), make([]float32, n.Dim())
	e := NewEngine(n, dev)
	loss, err := e.Grad(dev.Wrap(grad), x, g.Stream())
	if err != nil {
		t.Fatal(err)
	}
	if !(math.Abs(loss-g.Loss) <= 1e-6*g.Loss) {
		t.Errorf("loss %.12v, want %.12v", loss, g.Loss)
	}
	for _, p := range n.layout.Parts() {
		g.checkTensor(t, p, params[p.Offset:][:p.Size], grad[p.Offset:][:p.Size])
	}
	if len(g.GradFlat) > 0 {
		if off := relativeError(grad, g.GradFlat); !(off <= 3e-6) {
			t.Errorf("the gradient is off by %v of its norm", off)
		}
	}
	sum, hits, hits5, err := e.Score(x, g.Stream())
	if rows := float64(len(g.Tokens) * g.Block); err != nil || !(math.Abs(sum/rows-g.Loss) <= 1e-6*g.Loss) ||
		hits > hits5 || hits5 > rows {
		t.Errorf("score of %v tokens: loss %v, %v and %v hits, error %v", rows, sum, hits, hits5, err)
	}
	g.checkNext(t, e, x)
	if g.AdamW != nil {
		g.AdamW.check(t, e, x, g.Stream())
		g.AdamW.checkAfter(t, n, params)
		g.checkGreedy(t, e, x)
	}
}

// goldenAdamW is ten steps of AdamW on one batch.
type goldenAdamW struct {
	LR          float64
	WeightDecay float64 `json:"weight_decay"`
	Betas       []float64
	Eps, Clip   float64
	Steps       int
	Losses      []float64
	Norms       []float64 `json:"grad_norms_before_clip"`
	After       map[string]struct {
		Norm   float64
		First8 []float64
	}
}

func (a *goldenAdamW) check(t *testing.T, e *Engine, x device.Vector, b device.Batch) {
	dev, d := e.dev.(*cpu.Device), e.Dim()
	g, m, v, decayed := dev.NewVector(d), dev.NewVector(d), dev.NewVector(d), dev.NewVector(d)
	for k := range a.Steps + 1 {
		loss, err := e.Grad(g, x, b)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(loss-a.Losses[k]) <= 5e-6*a.Losses[k]) {
			t.Errorf("loss %.9v before step %d of AdamW, want %.9v", loss, k, a.Losses[k])
		}
		if k == a.Steps {
			return
		}
		norm := math.Sqrt(device.InnerProduct(dev, g, g))
		if !(math.Abs(norm-a.Norms[k]) <= 2e-5*a.Norms[k]) {
			t.Errorf("norm %v of gradient %d, want %v", norm, k, a.Norms[k])
		}
		dev.Do(device.Combine(g, device.Term{A: min(1, a.Clip/(norm+1e-6)), V: g}))
		dev.Do(device.Combine(decayed, device.Term{A: a.WeightDecay, V: x}))
		for _, p := range e.layout.tensors {
			if len(p.Shape) == 1 {
				clear(dev.Floats(decayed)[p.Offset:][:p.Size])
			}
		}
		b1, b2 := a.Betas[0], a.Betas[1]
		dev.Do(device.AdamW(device.Adam{
			Beta1:  b1,
			Rest1:  1 - b1,
			Beta2:  b2,
			Rest2:  1 - b2,
			Scale1: 1 / (1 - math.Pow(b1, float64(k+1))),
			Scale2: 1 / math.Sqrt(1-math.Pow(b2, float64(k+1))),
			Eps:    a.Eps,
		},
			g, m, v, x))
		dev.Do(device.Combine(x, device.Term{A: 1, V: x}, device.Term{A: -a.LR, V: g},
			device.Term{A: -a.LR, V: decayed}))
	}
}

// checkAfter compares the parameters after the last step. The gradient of a key's bias is zero but
// for rounding, which AdamW divides by itself, so those biases are left out.
func (a *goldenAdamW) checkAfter(t *testing.T, n *Network, params []float32) {
	const limit = 1e-5
	for _, p := range n.layout.Parts() {
		want, ok := a.After[p.Name]
		if !ok {
			t.Errorf("there is no tensor %s after AdamW", p.Name)
			continue
		}
		got := params[p.Offset:][:p.Size]
		if strings.HasSuffix(p.Name, "c_attn.bias") {
			got = got[:p.Size/3]
		} else {
			square := 0.0
			for _, v := range got {
				square += float64(v) * float64(v)
			}
			if norm := math.Sqrt(square); !(math.Abs(norm-want.Norm) <= limit*want.Norm) {
				t.Errorf("after AdamW the norm of %s is %v, want %v", p.Name, norm, want.Norm)
			}
		}
		for i, v := range want.First8[:min(len(got), len(want.First8))] {
			if !(math.Abs(float64(got[i])-v) <= limit) {
				t.Errorf("after AdamW number %d of %s is %v, want %v", i, p.Name, got[i], v)
			}
		}
	}
}

// goldenGreedy is a prompt and what follows it, each token that of the largest logit.
type goldenGreedy struct{ Prompt, IDs []uint16 }

func (g *goldenNetwork) checkGreedy(t *testing.T, e *Engine, x device.Vector) {
	so, logits := slices.Clone(g.Greedy.Prompt), make([]float64, g.Vocab)
	for len(so) < len(g.Greedy.IDs) {
		if err := e.Next(logits, x, so[max(0, len(so)-g.Block):]); err != nil {
			t.Fatal(err)
		}
		so = append(so, uint16(slices.Index(logits, slices.Max(logits))))
	}
	if !slices.Equal(so, g.Greedy.IDs) {
		t.Errorf("after AdamW the model writes %v, want %v", so, g.Greedy.IDs)
	}
}

func (g *goldenNetwork) checkTensor(t *testing.T, p Tensor, param, grad []float32) {
	want, ok := g.Tensors[p.Name]
	if !ok {
		t.Errorf("there is no tensor %s", p.Name)
		return
	}
	if fmt.Sprint(want.Shape) != fmt.Sprint(p.Shape) {
		t.Errorf("%s has shape %v, want %v", p.Name, p.Shape, want.Shape)
	}
	for i, v := range want.Param.First8 {
		if i < len(param) && !(math.Abs(float64(param[i])-v) <= 1e-7*math.Abs(v)+1e-9) {
			t.Errorf("number %d of %s is %v, want %v", i, p.Name, param[i], v)
		}
	}
	// each of the known numbers is off by at most the error of the tensor
	limit := 3e-6 * want.Grad.Norm
	for i, v := range want.Grad.First8 {
		if i < len(grad) && !(math.Abs(float64(grad[i])-v) <= limit) {
			t.Errorf("gradient %d of %s is %v, want %v within %v", i, p.Name, grad[i], v, limit)
		}
	}
	for i, v := range want.Grad.Last4 {
		if at := len(grad) - len(want.Grad.Last4) + i; !(math.Abs(float64(grad[at])-v) <= limit) {
			t.Errorf("gradient %d of %s is %v, want %v within %v", at, p.Name, grad[at], v, limit)
		}
	}
	square := 0.0
	for _, v := range grad {
		square += float64(v) * float64(v)
	}
	if norm := math.Sqrt(square); !(math.Abs(norm-want.Grad.Norm) <= limit) {
		t.Errorf("the norm of the gradient of %s is %v, want %v", p.Name, norm, want.Grad.Norm)
	}
}

// relativeError returns |got − want|/|want|.
func relativeError(got []float32, want []float64) float64 {
	off, norm := 0.0, 0.0
	for i, w := range want {
		off += (float64(got[i]) - w) * (float64(got[i]) - w)
		norm += w * w
	}
	return math.Sqrt(off / norm)
}

// checkNext compares the logits of the last token of every beginning of the first window.
func (g *goldenNetwork) checkNext(t *testing.T, e *Engine, x device.Vector) {
	var logits []float64
	if json.Unmarshal(g.Logits, &logits) != nil {
		return
	}
	largest := 0.0
	for _, v := range logits {
		largest = math.Max(largest, math.Abs(v))
	}
	out := make([]float64, g.Vocab)
	for length := 1; length <= g.Block; length++ {
		if err := e.Next(out, x, g.Tokens[0][:length]); err != nil {
			t.Fatal(err)
		}
		for v, got := range out {
			if want := logits[(length-1)*g.Vocab+v]; !(math.Abs(got-want) <= 2e-6*largest) {
				t.Errorf("logit %d after %d tokens is %v, want %v", v, length, got, want)
			}
		}
	}
}
