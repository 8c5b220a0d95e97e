package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"testing"

	"fspda/cuda/kernels"
)

// attentionResults holds the results of attention and its gradient: y and dqkv of an element, and
// lse.
type attentionResults struct {
	y, dqkv []byte
	lse     []float32
}

// runAttention runs attention and its gradient.
func runAttention(h *host, a kernels.Attention, qkv, y, dy []byte) attentionResults {
	rows := a.Windows * a.T
	r := attentionResults{make([]byte, rows*a.Heads*a.Width*a.Element.Size()), make([]byte, len(qkv)),
		make([]float32, rows*a.Heads)}
	a.QKV, a.Y, a.LSE, a.DY, a.DQKV = at(h, qkv), at(h, r.y), at(h, r.lse), at(h, dy), at(h, r.dqkv)
	a.Scratch = at(h, make([]byte, a.ScratchBytes()))
	h.run(a.Forward())
	if y != nil {
		a.Y = at(h, y)
	}
	h.run(a.Grad()...)
	return r
}

// attentionCases have windows, tokens, heads and widths: less than a tile, a tile and one more row,
// several tiles of both sides, and tails of every width of shared rows.
var attentionCases = [][4]int{{1, 1, 1, 8}, {2, 65, 2, 64}, {1, 129, 1, 32}, {1, 200, 2, 48}, {3, 33, 2, 16},
	{1, 130, 1, 128}, {1, 71, 2, 96}, {1, 300, 1, 64}}

// Attention on tensor cores differs from attention in float32, with the same operands, by the
// rounding of the outputs and of the factors that it computes, and lse by a few roundings. It has
// the same bits twice. The contract of devices checks every number.
func TestAttentionOnTensorCores(t *testing.T) {
	h := onHost(t)
	for i, c := range attentionCases {
		for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
			if e == kernels.F16 && i%2 == 0 && os.Getenv("FSPDA_LONG") == "" {
				continue
			}
			t.Run(fmt.Sprintf("%v %v", e, c), func(t *testing.T) {
				a := kernels.Attention{Windows: c[0], T: c[1], Heads: c[2], Width: c[3], Element: e}
				n := c[0] * c[1] * c[2] * c[3]
				qkv, _ := encode(h, e, numbers(1, 3*n))
				dy, _ := encode(h, e, numbers(2, n))
				want := runAttention(h, a, qkv, nil, dy)
				a.TensorCores = true
				got := runAttention(h, a, qkv, want.y, dy)
				again := runAttention(h, a, qkv, want.y, dy)
				if !bytes.Equal(got.y, again.y) || !bytes.Equal(got.dqkv, again.dqkv) {
					t.Error("a second run has other bits")
				}
				sameBits(t, "lse of a second run", again.lse, got.lse)
				for i, w := range want.lse {
					if !(math.Abs(float64(got.lse[i]-w)) <= 8*0x1p-24*(4+math.Abs(float64(w)))) {
						t.Fatalf("lse %d is %v, want %v", i, got.lse[i], w)
					}
				}
				for what, b := range map[string][2][]byte{"y": {got.y, want.y}, "dqkv": {got.dqkv, want.dqkv}} {
					far, long := 0.0, 0.0
					g, w := decode(h, e, b[0]), decode(h, e, b[1])
					for i := range w {
						far, long = far+math.Pow(float64(g[i])-float64(w[i]), 2), long+math.Pow(float64(w[i]), 2)
					}
					if off := math.Sqrt(far / long); !(off <= 2*unit(e)) {
						t.Errorf("%s is off by %.3g of its norm, want %.3g at most", what, off, 2*unit(e))
					}
				}
			})
		}
	}
}

// Heads without kernels on tensor cores are refused.
func TestAttentionFits(t *testing.T) {
	for _, c := range []struct {
		width int
		e     kernels.Element
		fits  bool
	}{{8, kernels.F16, true}, {64, kernels.BF16, true}, {128, kernels.F16, true}, {136, kernels.F16, false},
		{20, kernels.BF16, false}, {64, kernels.F32, false}} {
		a := kernels.Attention{Width: c.width, Element: c.e}
		if a.FitsTensorCores() != c.fits {
			t.Errorf("heads of %d numbers of %v: %v", c.width, c.e, !c.fits)
		}
	}
}
