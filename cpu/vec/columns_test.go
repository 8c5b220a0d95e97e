package vec

import (
	"testing"

	"fspda/cpu/isa"
	"fspda/internal/testing/kerneltest"
)

// Sums of columns are rounded once: 1 is not lost next to 2^24.
func TestColumnSums(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 17} {
		const m = 6
		a, dst := make([]float32, m*n), make([]float32, n)
		for j := range n {
			for i, v := range []float32{1 << 24, 1, 1, 1, float32(j), -1 << 24} {
				a[i*n+j] = v
			}
		}
		ColumnSums(dst, a, m, n)
		for j, got := range dst {
			if want := float32(3 + j); got != want {
				t.Errorf("n = %d: column %d is %v, want %v", n, j, got, want)
			}
		}
	}
}

// A column block of many rows is summed in calls of rowBlock.
func TestColumnSumsOfManyRows(t *testing.T) {
	const n = 85
	for _, m := range []int{rowBlock - 1, rowBlock, 2*rowBlock + 1} {
		a, got := kerneltest.Noise("a", m*n), make([]float32, n)
		for _, code := range isa.Available() {
			isa.With(code, func() { ColumnSums(got, a, m, n) })
			for j, g := range got {
				want := 0.0
				for i := range m {
					want += float64(a[i*n+j])
				}
				if g != float32(want) {
					t.Fatalf("%d rows in %v: column %d is %v, want %v", m, code, j, g, want)
				}
			}
		}
	}
}
