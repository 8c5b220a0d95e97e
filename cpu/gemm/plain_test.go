package gemm

import (
	"testing"

	"fspda/cpu/tile"
	"fspda/internal/testing/kerneltest"
)

// The product in Go is that of the doc of Multiply, element by element.
func TestProductPlain(t *testing.T) {
	for _, k := range []int{1, 5, tile.Depth, tile.Depth + 1, 2*tile.Depth + 3} {
		for m := 1; m <= 2*tile.PlainRows+1; m++ {
			for n := 1; n <= 2*tile.PlainCols+1; n++ {
				for _, beta := range []float32{0, 1, -0.5} {
					a, b := kerneltest.Noise("a", m*k), kerneltest.Noise("b", k*n)
					c := kerneltest.Noise("c", m*n)
					want := append([]float32{}, c...)
					for i := range m {
						for j := range n {
							want[i*n+j] = definedElement(a[i*k:], b[j:], k, n, -1.5, beta, want[i*n+j])
						}
					}
					plainNumbers(m, n, k, -1.5, tile.RowMajor(a, k), tile.RowMajor(b, n), beta, tile.RowMajor(c, n),
						epilogue{})
					for i := range c {
						if !kerneltest.Same(c[i], want[i]) {
							t.Fatalf("%d×%d×%d, beta %v: element %d is %v, want %v", m, n, k, beta, i, c[i], want[i])
						}
					}
				}
			}
		}
	}
}

// definedElement returns one element of C, as the doc of Multiply defines it.
func definedElement(row, column []float32, k, ldb int, alpha, beta, c float32) float32 {
	end := 0
	for left := (k + tile.Depth - 1) / tile.Depth; left > 0; left-- {
		var s float32
		begin := end
		end += (k - begin + left - 1) / left // the longest chunk that leaves the others no longer
		for p := begin; p < end; p++ {
			s = float32(tile.FMA(float64(row[p]), float64(column[p*ldb]), float64(s)))
		}
		if begin == 0 && beta == 0 {
			c = alpha * s
		} else {
			c = float32(tile.FMA(float64(alpha), float64(s), float64(float32(beta*c))))
		}
		beta = 1
	}
	return c
}
