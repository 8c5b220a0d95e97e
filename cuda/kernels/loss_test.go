package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"fspda/cuda/kernels"
)

// The loss of many classes with logits of 16 bits equals the loss in float32 up to a rounding of
// the gradient, with padding, labels at the ends, smoothing and a loss scale; the padding of the
// gradient becomes 0, and a label that is no class is reported.
func TestWideLoss(t *testing.T) {
	h := onHost(t)
	const m = 5
	for i, c := range []struct {
		n, padded        int
		smoothing, scale float64
	}{{2049, 2112, 0, 1}, {8200, 8256, 0.1, 1024}, {64, 64, 0, 1}, {20001, 20032, 0, 512}} {
		e := []kernels.Element{kernels.F16, kernels.BF16}[i%2]
		t.Run(fmt.Sprintf("%v %d of %d", e, c.n, c.padded), func(t *testing.T) {
			x := numbers(uint64(c.n), m*c.padded)
			for i := range x {
				if x[i] *= 4; i%c.padded >= c.n {
					x[i] = 1e4 // padding is not read
				}
			}
			raw, rounded := encode(h, e, x)
			dense := make([]float32, 0, m*c.n)
			for r := range m {
				dense = append(dense, rounded[r*c.padded:][:c.n]...)
			}
			labels, scaler := []float32{0, float32(c.n - 1), 7, 8, 30}, kernels.Scaler{Scale: float32(c.scale)}.Bytes()
			want, wantLoss := make([]float32, m*c.n), make([]float32, 1)
			loss, bad, rows := make([]float32, 1), []uint32{kernels.NoBadRow}, make([]float64, m)
			h.run(kernels.SoftmaxCrossEntropy(at(h, wantLoss), at(h, want), at(h, dense), at(h, labels), at(h, rows),
				at(h, bad), m, c.n, c.smoothing)...)
			got := bytes.Clone(raw)
			w := kernels.WideLoss{Element: e, M: m, N: c.n, Padded: c.padded, Smoothing: c.smoothing,
				Logits: at(h, got), Labels: at(h, labels), Loss: at(h, loss), DLogits: at(h, got), RowLoss: at(h, rows),
				Bad: at(h, bad), Scaler: at(h, scaler)}
			h.run(w.Calls()...)
			if off := math.Abs(float64(loss[0] - wantLoss[0])); !(off <= 8*0x1p-24*float64(wantLoss[0])) {
				t.Errorf("loss %v, want %v", loss[0], wantLoss[0])
			}
			smallest := map[kernels.Element]float64{kernels.F16: 0x1p-25, kernels.BF16: 0x1p-134}[e]
			for i, g := range decode(h, e, got) {
				r, j, w := i/c.padded, i%c.padded, 0.0
				if j < c.n {
					w = c.scale * float64(want[r*c.n+j])
				}
				off := math.Abs(float64(g) - w)
				limit := unit(e)*1.01*math.Abs(w) + smallest + 0x1p-20*c.scale*c.smoothing/float64(m*c.n)
				if !(off <= limit) || j >= c.n && g != 0 {
					t.Fatalf("gradient %d of row %d is %v, want %v within %v", j, r, g, w, limit)
				}
			}
			if bad[0] != kernels.NoBadRow {
				t.Errorf("row %d is bad", bad[0])
			}
			whole, rest := bytes.Clone(got), rows[0]
			copy(got, raw)
			h.run(w.Rows(0, 2))
			w.Logits, w.DLogits = at(h, got[2*c.padded*e.Size():]), at(h, got[2*c.padded*e.Size():])
			h.run(w.Rows(2, m-2))
			if !bytes.Equal(got, whole) || rows[0] != rest {
				t.Error("the loss of two pieces has other bits")
			}
			w.Logits, w.DLogits = at(h, got), at(h, got)
			labels[3] = float32(c.n)
			if h.run(w.Calls()...); bad[0] != 3 {
				t.Errorf("row %d is bad, want 3", bad[0])
			}
		})
	}
}

// The mean loss of many rows is the mean of all of them.
func TestMeanLoss(t *testing.T) {
	h := onHost(t)
	for _, m := range []int{1, 31, 1024, 5000} {
		rows, loss, want := make([]float64, m), make([]float32, 1), 0.0
		for i, v := range numbers(uint64(m), m) {
			rows[i] = 10 + float64(v)
			want += rows[i] / float64(m)
		}
		w := kernels.WideLoss{Element: kernels.BF16, M: m, N: 64, Padded: 64, Loss: at(h, loss), RowLoss: at(h, rows)}
		h.run(w.Calls()[1])
		if off := math.Abs(float64(loss[0]) - want); !(off <= 0x1p-24*want) {
			t.Errorf("mean of %d losses %v, want %v", m, loss[0], want)
		}
	}
}

// Logits that are infinite or no numbers give the same kind of loss in 16 bits and in float32.
func TestWideLossOfInfinities(t *testing.T) {
	h := onHost(t)
	const n = 2056
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, smoothing := range []float64{0, 0.1} {
		for _, c := range []struct {
			at    int
			value float32
		}{{3, inf}, {7, inf}, {3, -inf}, {7, -inf}, {3, nan}, {7, nan}, {n - 1, -inf}, {n - 1, inf}} {
			x := numbers(1, n)
			x[c.at] = c.value
			labels, rows := []float32{7}, make([]float64, 1)
			bad := []uint32{kernels.NoBadRow}
			for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
				raw, dense := encode(h, e, x)
				want, wantLoss, loss := make([]float32, n), make([]float32, 1), make([]float32, 1)
				h.run(kernels.SoftmaxCrossEntropy(at(h, wantLoss), at(h, want), at(h, dense), at(h, labels),
					at(h, rows), at(h, bad), 1, n, smoothing)...)
				w := kernels.WideLoss{Element: e, M: 1, N: n, Padded: n, Smoothing: smoothing, Logits: at(h, raw),
					Labels: at(h, labels), Loss: at(h, loss), DLogits: at(h, raw), RowLoss: at(h, rows),
					Bad: at(h, bad)}
				h.run(w.Calls()...)
				kind := func(v float32) string {
					switch {
					case v != v:
						return "NaN"
					case math.IsInf(float64(v), 0):
						return fmt.Sprint(v)
					}
					return "a number"
				}
				if kind(loss[0]) != kind(wantLoss[0]) {
					t.Errorf("%v, smoothing %v, %v at %d: loss %v, want %v", e, smoothing, c.value, c.at, loss[0],
						wantLoss[0])
				}
				for i, g := range decode(h, e, raw) {
					if kind(g) != kind(want[i]) {
						t.Errorf("%v, smoothing %v, %v at %d: gradient %d is %v, want %v", e, smoothing, c.value, c.at,
							i, g, want[i])
						break
					}
				}
			}
		}
	}
}
