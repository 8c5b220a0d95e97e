package vec

import (
	"math"
	"testing"

	"fspda/internal/testing/kerneltest"
)

// The order of additions in a row is fixed as that of a scalar product: sixteen partial sums by
// index, then a tree.
func TestExpRowsOrder(t *testing.T) {
	for _, n := range []int{1, 7, 10, 16, 17, 33, 130, 1000} {
		const rows = 3
		x, tops, e, sums := kerneltest.Noise("x", rows*n), []float32{0.5, 1, 2}, make([]float32,
			rows*n), make([]float64, rows)
		expRows(e, sums, x, tops, n)
		for r := range rows {
			var s [16]float64
			for j, v := range x[r*n : (r+1)*n] {
				p := [1]float64{float64(v) - float64(tops[r])}
				exps(p[:])
				s[j%16] += p[0]
				if got := e[r*n+j]; got != float32(p[0]) {
					t.Fatalf("rows of %d: exponential %d of row %d is %v, want %v", n, j, r, got, p[0])
				}
			}
			if want := treeOf(s[:]); math.Float64bits(sums[r]) != math.Float64bits(want) {
				t.Errorf("rows of %d: sum %d is %v, want %v", n, r, sums[r], want)
			}
		}
	}
}

func TestRowMaximaIgnoreNaN(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tops := make([]float32, 4)
	rowMaxima(tops, []float32{nan, -3, -2, -inf, -inf, -inf, nan, nan, nan, 1, nan, inf}, 3)
	for r, want := range []float32{-2, -inf, -inf, inf} {
		if tops[r] != want {
			t.Errorf("row %d: %v, want %v", r, tops[r], want)
		}
	}
}
