package golden

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"fspda/device"
	"fspda/internal/testing/realdata"
)

// RunKernel computes a kernel and returns its outputs, of the given lengths.
type RunKernel func(k device.Kernel, attr float64, dims []int, in [][]float32, out ...int) [][]float32

// kernels is the section kernels of the file.
type kernels struct {
	LayerNorm rows `json:"layer-norm"`
	RMSNorm   rows `json:"rms-norm"`
	GELUTanh  gelu `json:"gelu-tanh"`
	GELUErf   gelu `json:"gelu-erf"`
	SwiGLU    struct{ Gate, Up, DY, Y, DGate, DUp []float64 }
	RoPE      struct {
		B, T, H, Hs  int
		Theta        float64
		X, DY, Y, DX []float64
	}
	Attention []attention
	Embed     struct {
		B, T, C, V, Positions       int
		IDs                         [][]int
		WTE, WPE, DY, Y, DWTE, DWPE []float64
	}
}

type attention struct {
	Fill               int `json:"t"`
	B, T, H, Hs        int
	QAmp               float64 `json:"q_amp"`
	Y, LSE, DQ, DK, DV numbers
}

// numbers holds all of an output, or the norm and the ends of a long one.
type numbers struct {
	all, first, last []float64
	norm             float64
}

func (g *numbers) UnmarshalJSON(raw []byte) error {
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

// near compares the known numbers, with a limit relative to the largest number.
func (g *numbers) near(t testing.TB, what string, got []float32, limit float64) {
	t.Helper()
	if g.all != nil {
		Near(t, what, got, g.all, limit)
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

// fill is n numbers of tensor k, by the formula that filled the operands of the golden values.
func fill(k, n int, amplitude float64) []float32 {
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

func (g attention) check(t testing.TB, run RunKernel) {
	m, n := g.B*g.T, g.H*g.Hs
	q, k, v, dy := fill(g.Fill, m*n, g.QAmp), fill(g.Fill+1, m*n, 1), fill(g.Fill+2, m*n, 1),
		fill(g.Fill+3, m*n, 1)
	var qkv []float32
	for r := range m {
		qkv = append(append(append(qkv, q[r*n:][:n]...), k[r*n:][:n]...), v[r*n:][:n]...)
	}
	dims, limit := []int{g.B, g.T, g.H, g.Hs}, 5e-7
	if g.T > 1000 {
		limit = 2e-6
	}
	out := run(device.Attention, 0, dims, [][]float32{qkv}, m*n, m*g.H)
	d := run(device.AttentionGrad, 0, dims, [][]float32{qkv, out[0], out[1], dy}, 3*m*n)[0]
	what := fmt.Sprintf("attention over %d tokens, ", g.T)
	g.Y.near(t, what+"y", out[0], limit)
	g.LSE.near(t, what+"lse", out[1], limit)
	g.DQ.near(t, what+"dq", part(d, 0, n), limit)
	g.DK.near(t, what+"dk", part(d, 1, n), limit)
	g.DV.near(t, what+"dv", part(d, 2, n), limit)
}

type rows struct {
	M, C                                    int
	Eps                                     float64
	X, Gamma, Beta, DY, Y, Mean, RStd, RRMS []float64
	DX, DGamma, DBeta                       []float64
}

type gelu struct {
	X, Y []float64
	DX   []float64 `json:"dx_for_dy_1"`
}

// Section reads a section of gpt-tiny-golden.json. It skips the test where there is no such file.
func Section(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(realdata.Path(t, "gpt-tiny-golden.json"))
	all := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err == nil {
		err = json.Unmarshal(all[name], into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Single rounds numbers to float32.
func Single(v []float64) []float32 {
	w := make([]float32, len(v))
	for i, x := range v {
		w[i] = float32(x)
	}
	return w
}

// Near reports numbers that are off by more than a multiple of the largest one.
func Near(t testing.TB, what string, got []float32, want []float64, limit float64) {
	t.Helper()
	largest, off := 0.0, 0.0
	for i, w := range want {
		largest, off = math.Max(largest, math.Abs(w)), math.Max(off, math.Abs(float64(got[i])-w))
	}
	if len(got) != len(want) || !(off <= limit*largest) { // all zeros must be zeros
		t.Errorf("%s: %d numbers off by %v of the largest, want %d within %v", what, len(got), off/largest, len(want),
			limit)
	}
}

// Kernels compares the kernels of language models with PyTorch's results in float64.
func Kernels(t testing.TB, run RunKernel) {
	var g kernels
	Section(t, "kernels", &g)
	g.checkRows(t, run)
	g.checkGELU(t, run, "tanh", device.GELUTanh, device.GELUTanhGrad, g.GELUTanh)
	g.checkGELU(t, run, "erf", device.GELUErf, device.GELUErfGrad, g.GELUErf)
	for _, a := range g.Attention {
		a.check(t, run)
	}
	o := g.RoPE
	dims := []int{o.B, o.T, o.H, o.Hs}
	Near(t, "rope", run(device.RoPE, o.Theta, dims, [][]float32{threefold(o.X, o.H*o.Hs)}, 3*len(o.X))[0],
		widened(threefold(o.Y, o.H*o.Hs), o.X, o.H*o.Hs), 5e-7)
	Near(t, "rope dx", run(device.RoPEGrad, o.Theta, dims, [][]float32{threefold(o.DY, o.H*o.Hs)}, 3*len(o.X))[0],
		widened(threefold(o.DX, o.H*o.Hs), o.DY, o.H*o.Hs), 5e-7)
	s := g.SwiGLU
	n := len(s.Y)
	gu := Single(append(slices.Clone(s.Gate), s.Up...))
	Near(t, "swiglu", run(device.SwiGLU, 0, []int{1, n}, [][]float32{gu}, n)[0], s.Y, 5e-7)
	d := run(device.SwiGLUGrad, 0, []int{1, n}, [][]float32{gu, Single(s.DY)}, 2*n)[0]
	Near(t, "swiglu dgate", d[:n], s.DGate, 5e-7)
	Near(t, "swiglu dup", d[n:], s.DUp, 5e-7)
	e := g.Embed
	var ids []float32
	for _, row := range e.IDs {
		for _, id := range row {
			ids = append(ids, float32(id))
		}
	}
	dims = []int{e.B * e.T, e.V, e.C, e.Positions, e.T}
	Near(t, "embed", run(device.Embed, 0, dims, [][]float32{ids, Single(e.WTE), Single(e.WPE)}, len(e.Y))[0], e.Y, 5e-7)
	de := run(device.EmbedGrad, 0, dims, [][]float32{ids, Single(e.DY)}, len(e.DWTE), len(e.DWPE))
	Near(t, "embed dwte", de[0], e.DWTE, 5e-7)
	Near(t, "embed dwpe", de[1], e.DWPE, 5e-7)
}

// threefold returns rows of n numbers, each three times: as queries, keys and values.
func threefold(v []float64, n int) (all []float32) {
	for r := 0; r < len(v); r += n {
		for range 3 {
			all = append(all, Single(v[r:][:n])...)
		}
	}
	return all
}

// widened returns rows of three parts as float64, the values unrotated.
func widened(v []float32, x []float64, n int) (all []float64) {
	for i, f := range v {
		if i%(3*n) >= 2*n {
			f = float32(x[i/(3*n)*n+i%n])
		}
		all = append(all, float64(f))
	}
	return all
}

func (g *kernels) checkRows(t testing.TB, run RunKernel) {
	l, r := g.LayerNorm, g.RMSNorm
	dims, size := []int{l.M, l.C}, l.M*l.C
	y := run(device.LayerNorm,
		l.Eps,
		dims,
		[][]float32{Single(l.X), Single(l.Gamma), Single(l.Beta)},
		size,
		l.M,
		l.M,
	)
	last := size - l.C
	Near(t, "layer-norm", y[0][:last], l.Y[:last], 5e-7)
	Near(t, "layer-norm, row of mean 100", y[0][last:], l.Y[last:], 2e-6)
	Near(t, "layer-norm mean", y[1], l.Mean, 5e-7)
	Near(t, "layer-norm rstd", y[2], l.RStd, 5e-7)
	d := run(device.LayerNormGrad,
		0,
		dims,
		[][]float32{Single(l.X), Single(l.DY), Single(l.Gamma), y[1], y[2]},
		size,
		l.C,
		l.C,
	)
	Near(t, "layer-norm dx", d[0][:last], l.DX[:last], 5e-7)
	Near(t, "layer-norm dx, row of mean 100", d[0][last:], l.DX[last:], 2e-6)
	Near(t, "layer-norm dgamma", d[1], l.DGamma, 2e-6)
	Near(t, "layer-norm dbeta", d[2], l.DBeta, 5e-7)
	y = run(device.RMSNorm, r.Eps, dims, [][]float32{Single(r.X), Single(r.Gamma)}, size, r.M)
	Near(t, "rms-norm", y[0], r.Y, 5e-7)
	Near(t, "rms-norm rrms", y[1], r.RRMS, 5e-7)
	d = run(device.RMSNormGrad, 0, dims, [][]float32{Single(r.X), Single(r.DY), Single(r.Gamma), y[1]}, size, r.C)
	Near(t, "rms-norm dx", d[0], r.DX, 5e-7)
	Near(t, "rms-norm dgamma", d[1], r.DGamma, 5e-7)
}

func (g *kernels) checkGELU(t testing.TB, run RunKernel, name string, k, grad device.Kernel, of gelu) {
	n := len(of.X)
	x, one := Single(of.X), make([]float32, n)
	for i := range one {
		one[i] = 1
	}
	y := run(k, 0, []int{n}, [][]float32{x}, n)[0]
	dx := run(grad, 0, []int{n}, [][]float32{x, one}, n)[0]
	for i := range x {
		if want := of.Y[i]; !(math.Abs(float64(y[i])-want) <= 2.4e-7*math.Abs(want)+1e-8) {
			t.Errorf("gelu %s of %v is %v, want %v", name, x[i], y[i], want)
		}
		if want := of.DX[i]; !(math.Abs(float64(dx[i])-want) <= 2.4e-7*math.Abs(want)+1e-8) {
			t.Errorf("derivative of gelu %s at %v is %v, want %v", name, x[i], dx[i], want)
		}
	}
}
