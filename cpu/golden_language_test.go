package cpu

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fspda/device"
)

// languageGolden is the kernels of shared/data/gpt-tiny-golden.json, which PyTorch computed in
// float64.
type languageGolden struct {
	LayerNorm goldenRows `json:"layer-norm"`
	RMSNorm   goldenRows `json:"rms-norm"`
	GELUTanh  goldenGELU `json:"gelu-tanh"`
	GELUErf   goldenGELU `json:"gelu-erf"`
	SwiGLU    struct{ Gate, Up, DY, Y, DGate, DUp []float64 }
	RoPE      struct {
		B, T, H, Hs  int
		Theta        float64
		X, DY, Y, DX []float64
	}
	Attention []goldenAttention
	AdamW     struct {
		LR, Eps float64
		Betas   []float64
		P       []float64
		G       [][]float64
		Runs    []struct {
			Decay float64
			Steps []struct{ P, M, V []float64 }
		}
	}
	Embed struct {
		B, T, C, V, Positions       int
		IDs                         [][]int
		WTE, WPE, DY, Y, DWTE, DWPE []float64
	}
}

type goldenAttention struct {
	Fill               int `json:"t"`
	B, T, H, Hs        int
	QAmp               float64 `json:"q_amp"`
	Y, LSE, DQ, DK, DV goldenNumbers
}

// goldenNumbers is all of an output, or of a long one the norm and the ends.
type goldenNumbers struct {
	all, first, last []float64
	norm             float64
}

func (g *goldenNumbers) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &g.all) == nil {
		return nil
	}
	var part struct {
		Norm          float64
		First8, Last4 []float64
	}
	err := json.Unmarshal(raw, &part)
	g.norm, g.first, g.last = part.Norm, part.First8, part.Last4
	return err
}

// near compares what is known, with a limit relative to the largest number.
func (g *goldenNumbers) near(t *testing.T, what string, got []float32, limit float64) {
	t.Helper()
	if g.all != nil {
		near(t, what, got, g.all, limit)
		return
	}
	largest, square := 0.0, 0.0
	for _, v := range got {
		largest, square = math.Max(largest, math.Abs(float64(v))), square+float64(v)*float64(v)
	}
	check := func(got float32, want float64) {
		if !(math.Abs(float64(got)-want) <= limit*largest) {
			t.Errorf("%s: %v, want %v within %v", what, got, want, limit*largest)
		}
	}
	for i, w := range g.first {
		check(got[i], w)
	}
	for i, w := range g.last {
		check(got[len(got)-len(g.last)+i], w)
	}
	if norm := math.Sqrt(square); !(math.Abs(norm-g.norm) <= limit*g.norm) {
		t.Errorf("%s: norm %v, want %v", what, norm, g.norm)
	}
}

// goldenFill is n numbers of tensor k of the golden values: see shared/design/language.md, section 5.
func goldenFill(k, n int, amplitude float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		a, b := int64(i+1), int64(k+1)
		v[i] = float32(amplitude * (float64((131*a*a+977*a*b+7919*b)%10007)/5003 - 1))
	}
	return v
}

// part returns the queries, keys or values of qkv, whose rows have n of each.
func part(qkv []float32, which, n int) (v []float32) {
	for r := 0; r < len(qkv); r += 3 * n {
		v = append(v, qkv[r+which*n:][:n]...)
	}
	return v
}

func (g goldenAttention) check(t *testing.T) {
	rows, n := g.B*g.T, g.H*g.Hs
	q, k, v, dy := goldenFill(g.Fill, rows*n, g.QAmp), goldenFill(g.Fill+1, rows*n, 1), goldenFill(g.Fill+2, rows*n, 1),
		goldenFill(g.Fill+3, rows*n, 1)
	var qkv []float32
	for r := range rows {
		qkv = append(append(append(qkv, q[r*n:][:n]...), k[r*n:][:n]...), v[r*n:][:n]...)
	}
	dims, limit := []int{g.B, g.T, g.H, g.Hs}, 5e-7
	if g.T > 1000 {
		limit = 2e-6
	}
	out := run(t, device.Attention, 0, dims, [][]float32{qkv}, rows*n, rows*g.H)
	d := run(t, device.AttentionGrad, 0, dims, [][]float32{qkv, out[0], out[1], dy}, 3*rows*n)[0]
	what := fmt.Sprintf("attention over %d tokens, ", g.T)
	g.Y.near(t, what+"y", out[0], limit)
	g.LSE.near(t, what+"lse", out[1], limit)
	g.DQ.near(t, what+"dq", part(d, 0, n), limit)
	g.DK.near(t, what+"dk", part(d, 1, n), limit)
	g.DV.near(t, what+"dv", part(d, 2, n), limit)
}

type goldenRows struct {
	M, C                                    int
	Eps                                     float64
	X, Gamma, Beta, DY, Y, Mean, RStd, RRMS []float64
	DX, DGamma, DBeta                       []float64
}

type goldenGELU struct {
	X, Y []float64
	DX   []float64 `json:"dx_for_dy_1"`
}

func languageKernels(t *testing.T, into any) {
	t.Helper()
	for _, folder := range []string{os.Getenv("FSPDA_DATA"), "../../shared/data", "../../../shared/data"} {
		raw, err := os.ReadFile(filepath.Join(folder, "gpt-tiny-golden.json"))
		if err != nil {
			continue
		}
		var all struct{ Kernels json.RawMessage }
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(all.Kernels, into); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Skip("skipped: no golden values; set FSPDA_DATA to a folder with gpt-tiny-golden.json in it")
}

// single rounds numbers to float32.
func single(v []float64) []float32 {
	w := make([]float32, len(v))
	for i, x := range v {
		w[i] = float32(x)
	}
	return w
}

// run calls a kernel and returns its outputs, of the given lengths.
func run(t *testing.T, k device.Kernel, attr float64, dims []int, in [][]float32, out ...int) [][]float32 {
	t.Helper()
	var results [][]float32
	for _, n := range out {
		results = append(results, make([]float32, n))
	}
	if err := Call(&device.Call{Kernel: k, Dims: dims, Attr: attr}, in, results); err != nil {
		t.Fatal(err)
	}
	return results
}

// near reports numbers that are off by more than a multiple of the largest one.
func near(t *testing.T, what string, got []float32, want []float64, limit float64) {
	t.Helper()
	largest, off := 0.0, 0.0
	for i, w := range want {
		largest, off = math.Max(largest, math.Abs(w)), math.Max(off, math.Abs(float64(got[i])-w))
	}
	if len(got) != len(want) || !(off <= limit*largest) { // all zeros must be zeros
		t.Errorf(
			"%s: %d numbers off by %v of the largest, want %d within %v",
			what,
			len(got),
			off/largest,
			len(want),
			limit,
		)
	}
}

// The kernels agree with PyTorch in float64.
func TestGoldenLanguageKernels(t *testing.T) {
	var g languageGolden
	languageKernels(t, &g)
	g.checkRows(t)
	g.checkGELU(t, "tanh", device.GELUTanh, device.GELUTanhGrad, g.GELUTanh)
	g.checkGELU(t, "erf", device.GELUErf, device.GELUErfGrad, g.GELUErf)
	for _, a := range g.Attention {
		a.check(t)
	}
	o := g.RoPE
	dims := []int{o.B, o.T, o.H, o.Hs}
	near(t, "rope", run(t, device.RoPE, o.Theta, dims, [][]float32{threefold(o.X, o.H*o.Hs)}, 3*len(o.X))[0],
		widened(threefold(o.Y, o.H*o.Hs), o.X, o.H*o.Hs), 5e-7)
	near(t, "rope dx", run(t, device.RoPEGrad, o.Theta, dims, [][]float32{threefold(o.DY, o.H*o.Hs)}, 3*len(o.X))[0],
		widened(threefold(o.DX, o.H*o.Hs), o.DY, o.H*o.Hs), 5e-7)
	s := g.SwiGLU
	n := len(s.Y)
	gu := single(append(slices.Clone(s.Gate), s.Up...))
	near(t, "swiglu", run(t, device.SwiGLU, 0, []int{1, n}, [][]float32{gu}, n)[0], s.Y, 5e-7)
	d := run(t, device.SwiGLUGrad, 0, []int{1, n}, [][]float32{gu, single(s.DY)}, 2*n)[0]
	near(t, "swiglu dgate", d[:n], s.DGate, 5e-7)
	near(t, "swiglu dup", d[n:], s.DUp, 5e-7)
	e := g.Embed
	var ids []float32
	for _, row := range e.IDs {
		for _, id := range row {
			ids = append(ids, float32(id))
		}
	}
	dims = []int{e.B * e.T, e.V, e.C, e.Positions, e.T}
	near(
		t,
		"embed",
		run(t, device.Embed, 0, dims, [][]float32{ids, single(e.WTE), single(e.WPE)}, len(e.Y))[0],
		e.Y,
		5e-7,
	)
	de := run(t, device.EmbedGrad, 0, dims, [][]float32{ids, single(e.DY)}, len(e.DWTE), len(e.DWPE))
	near(t, "embed dwte", de[0], e.DWTE, 5e-7)
	near(t, "embed dwpe", de[1], e.DWPE, 5e-7)
}

// Steps of AdamW with and without decay agree with PyTorch in float64.
func TestGoldenAdamW(t *testing.T) {
	var golden languageGolden
	languageKernels(t, &golden)
	a, d := golden.AdamW, New()
	for _, run := range a.Runs {
		p, n := single(a.P), len(a.P)
		x, m, v := d.Wrap(p), d.NewVector(n), d.NewVector(n)
		for k, step := range run.Steps {
			u, power := d.Wrap(single(a.G[k])), float64(k+1)
			d.AdamW(device.Adam{
				Beta1: a.Betas[0], Rest1: 1 - a.Betas[0], Scale1: 1 / (1 - math.Pow(a.Betas[0], power)),
				Beta2: a.Betas[1], Rest2: 1 - a.Betas[1], Scale2: 1 / math.Sqrt(1-math.Pow(a.Betas[1], power)),
				Eps: a.Eps,
			}, u, m, v, x)
			d.Combine(x, device.Term{A: 1 - a.LR*run.Decay, V: x}, device.Term{A: -a.LR, V: u})
			what := fmt.Sprintf("step %d of AdamW with decay %v, ", k, run.Decay)
			near(t, what+"p", p, step.P, 5e-7)
			near(t, what+"m", d.Floats(m), step.M, 5e-7)
			near(t, what+"v", d.Floats(v), step.V, 5e-7)
		}
	}
}

// threefold returns rows of n numbers, each three times: as queries, keys and values.
func threefold(v []float64, n int) (all []float32) {
	for r := 0; r < len(v); r += n {
		for range 3 {
			all = append(all, single(v[r:][:n])...)
		}
	}
	return all
}

// widened returns rows of three parts as float64, the values being those of x: they are not turned.
func widened(v []float32, x []float64, n int) (all []float64) {
	for i, f := range v {
		if i%(3*n) >= 2*n {
			f = float32(x[i/(3*n)*n+i%n])
		}
		all = append(all, float64(f))
	}
	return all
}

func (g *languageGolden) checkRows(t *testing.T) {
	l, r := g.LayerNorm, g.RMSNorm
	dims, size := []int{l.M, l.C}, l.M*l.C
	y := run(
		t,
		device.LayerNorm,
		l.Eps,
		dims,
		[][]float32{single(l.X), single(l.Gamma), single(l.Beta)},
		size,
		l.M,
		l.M,
	)
	last := size - l.C
	near(t, "layer-norm", y[0][:last], l.Y[:last], 5e-7)
	near(t, "layer-norm, row of mean 100", y[0][last:], l.Y[last:], 2e-6)
	near(t, "layer-norm mean", y[1], l.Mean, 5e-7)
	near(t, "layer-norm rstd", y[2], l.RStd, 5e-7)
	d := run(
		t,
		device.LayerNormGrad,
		0,
		dims,
		[][]float32{single(l.X), single(l.DY), single(l.Gamma), y[1], y[2]},
		size,
		l.C,
		l.C,
	)
	near(t, "layer-norm dx", d[0][:last], l.DX[:last], 5e-7)
	near(t, "layer-norm dx, row of mean 100", d[0][last:], l.DX[last:], 2e-6)
	near(t, "layer-norm dgamma", d[1], l.DGamma, 2e-6)
	near(t, "layer-norm dbeta", d[2], l.DBeta, 5e-7)
	y = run(t, device.RMSNorm, r.Eps, dims, [][]float32{single(r.X), single(r.Gamma)}, size, r.M)
	near(t, "rms-norm", y[0], r.Y, 5e-7)
	near(t, "rms-norm rrms", y[1], r.RRMS, 5e-7)
	d = run(t, device.RMSNormGrad, 0, dims, [][]float32{single(r.X), single(r.DY), single(r.Gamma), y[1]}, size, r.C)
	near(t, "rms-norm dx", d[0], r.DX, 5e-7)
	near(t, "rms-norm dgamma", d[1], r.DGamma, 5e-7)
}

func (g *languageGolden) checkGELU(t *testing.T, name string, k, grad device.Kernel, of goldenGELU) {
	n := len(of.X)
	x, one := single(of.X), make([]float32, n)
	for i := range one {
		one[i] = 1
	}
	y := run(t, k, 0, []int{n}, [][]float32{x}, n)[0]
	dx := run(t, grad, 0, []int{n}, [][]float32{x, one}, n)[0]
	for i := range x {
		if want := of.Y[i]; !(math.Abs(float64(y[i])-want) <= 2.4e-7*math.Abs(want)+1e-8) {
			t.Errorf("gelu %s of %v is %v, want %v", name, x[i], y[i], want)
		}
		if want := of.DX[i]; !(math.Abs(float64(dx[i])-want) <= 2.4e-7*math.Abs(want)+1e-8) {
			t.Errorf("derivative of gelu %s at %v is %v, want %v", name, x[i], dx[i], want)
		}
	}
}
