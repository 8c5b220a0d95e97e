package kernels_test

import (
	"math"
	"testing"

	"fspda/cuda/kernels"
)

// ReLU keeps NaN, and the bits mark the numbers greater than 0.
func TestReLUBits(t *testing.T) {
	h := onHost(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for e, format := range formats {
		const rows, n, bytes = 3, 11, 16
		v := numbers(1, rows*n)
		copy(v[n:], []float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), -1, 2})
		format.Round(v)
		y, py := copied(h, format.Append(nil, v))
		bits, pbits := copied(h, make([]byte, rows*bytes))
		for i := range bits {
			bits[i] = 0xff
		}
		h.run(kernels.ReLUBits(e, py, pbits, rows, n, bytes))
		got := make([]float32, rows*n)
		format.Read(got, y)
		for i := range rows {
			for j := range 8 * bytes {
				set := bits[i*bytes+j/8]>>(j%8)&1 == 1
				if j >= n {
					if set {
						t.Errorf("%s: bit %d of row %d is set, beyond the row", e, j, i)
					}
					continue
				}
				x, out := v[i*n+j], got[i*n+j]
				want := max(x, 0)
				if set != (x > 0) || out != want && !(x != x && out != out) {
					t.Errorf("%s: %v becomes %v with bit %v", e, x, out, set)
				}
			}
		}
	}
}
