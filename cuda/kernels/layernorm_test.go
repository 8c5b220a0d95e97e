package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"fspda/cuda/kernels"
)

// rowNorm holds the operands of layer norm or RMS norm, and its gradient.
type rowNorm struct {
	kernels.LayerNorm
	s, mean, rstd, dx, dgamma, dbeta []float32
	y                                []byte
}

// newRowNorm places the operands. Rows are far from zero; dx is added to base.
func newRowNorm(h *host, e kernels.Element, m, c int, add, rms bool, x, d, dy, gamma, beta, base []float32) *rowNorm {
	n := &rowNorm{LayerNorm: kernels.LayerNorm{M: m, C: c, Eps: 1e-5, Element: e, X: at(h, x), Gamma: at(h, gamma)},
		mean: make([]float32, m), rstd: make([]float32, m), dx: make([]float32, m*c), dgamma: make([]float32, c),
		dbeta: make([]float32, c), y: make([]byte, m*c*e.Size())}
	n.S, n.Y, n.RStd = n.X, at(h, n.y), at(h, n.rstd)
	if add {
		raw, _ := encode(h, e, d)
		n.s = make([]float32, m*c)
		n.S, n.Addend, n.DXAddend = at(h, n.s), at(h, raw), at(h, base)
	}
	if !rms {
		n.Mean, n.Beta, n.DBeta = at(h, n.mean), at(h, beta), at(h, n.dbeta)
	}
	raw, _ := encode(h, e, dy)
	n.DY, n.DX, n.DGamma = at(h, raw), at(h, n.dx), at(h, n.dgamma)
	n.Scratch = at(h, make([]float64, n.ScratchBytes()/8))
	return n
}

// run computes the norm and the gradient with the statistics of the norm.
func (n *rowNorm) run(h *host) {
	forward := n.LayerNorm
	if forward.Addend == 0 {
		forward.S = 0
	}
	h.run(forward.Forward())
	n.X = n.S
	h.run(n.Grad()...)
}

// Layer norm and RMS norm of 16-bit numbers by blocks equal the results of float32, which are
// computed in float64, up to a rounding of y and a few of float32, in blocks of one warp and of
// several, and with fewer columns than threads.
func TestLayerNormRows(t *testing.T) {
	h := onHost(t)
	for i, s := range []struct {
		m, c     int
		add, rms bool
	}{{33, 768, true, false}, {16, 4, false, false}, {530, 132, true, true}, {3, 3072, false, false},
		{18, 260, false, true}} {
		e := []kernels.Element{kernels.BF16, kernels.F16}[i%2]
		t.Run(fmt.Sprintf("%v %d×%d", e, s.m, s.c), func(t *testing.T) {
			x, d, dy := numbers(1, s.m*s.c), numbers(2, s.m*s.c), numbers(3, s.m*s.c)
			gamma, beta, base := numbers(4, s.c), numbers(5, s.c), numbers(6, s.m*s.c)
			for i := range x {
				x[i] += float32(i / s.c % 3 * 20)
			}
			_, d = encode(h, e, d)
			_, dy = encode(h, e, dy)
			got := newRowNorm(h, e, s.m, s.c, s.add, s.rms, x, d, dy, gamma, beta, base)
			want := newRowNorm(h, kernels.F32, s.m, s.c, s.add, s.rms, x, d, dy, gamma, beta, base)
			if name, want := got.Forward().Kernel.Name, "layer_norm_rows_"+e.String(); name != want {
				t.Fatalf("kernel %s, want %s", name, want)
			}
			rounded := make([]byte, s.m*s.c*e.Size())
			sums, wantSums := make([]float32, s.c), make([]float32, s.c)
			got.Rounded, got.Sums, want.Sums = at(h, rounded), at(h, sums), at(h, wantSums)
			got.run(h)
			want.run(h)
			_, dx := encode(h, e, got.dx)
			sameBits(t, "rounded dx", decode(h, e, rounded), dx)
			sameBits(t, "sum", got.s, want.s)
			const most = 45 // the largest |x|
			near := func(what string, got, want []float32, relative, absolute float64) {
				t.Helper()
				for i, w := range want {
					if off := math.Abs(float64(got[i]) - float64(w)); !(off <= relative*math.Abs(float64(w))+absolute) {
						t.Fatalf("%s %d is %v, want %v", what, i, got[i], w)
					}
				}
			}
			near("mean", got.mean, want.mean, 0x1p-21, 0x1p-21)
			near("rstd", got.rstd, want.rstd, 0x1p-20, 0)
			near("y", decode(h, e, got.y), decode(h, kernels.F32, want.y), 1.01*unit(e), most*0x1p-20)
			near("dx", got.dx, want.dx, 0x1p-20, most*0x1p-19)
			near("sums", sums, wantSums, 0x1p-20, most*float64(s.m)*0x1p-19)
			near("dgamma", got.dgamma, want.dgamma, 0x1p-20, most*float64(s.m)*0x1p-22)
			near("dbeta", got.dbeta, want.dbeta, 0x1p-20, float64(s.m)*0x1p-22)
		})
	}
}
