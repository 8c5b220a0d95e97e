package gemm

import (
	"testing"

	"fspda/cpu/tile"
	"fspda/internal/testing/kerneltest"
)

// No operand is read or written behind its last number, however small the last tile is.
func TestGemmStaysInBounds(t *testing.T) {
	for _, l := range layouts {
		for _, s := range [][3]int{{1, 1, 1}, {1, 3, 5}, {7, 9, 11}, {13, 17, 8}, {15, 41, 9}, {16, 31, 16},
			{520, 33, 5}, {9, 130, 7}, {513, 35, 3}} {
			m, n, k := s[0], s[1], s[2]
			// contiguous rows, and rows whose stride makes packing worthwhile
			for _, apart := range []int{0, 1024} {
				lda, ldb := strides(l.transA, l.transB, m, n, k)
				lda, ldb = max(lda, apart), max(ldb, apart)
				a, b := stored(l.transA, nil, lda), stored(l.transB, nil, ldb)
				a.Data = kerneltest.Fenced(t, (m-1)*a.RowStride+(k-1)*a.ColStride+1)
				b.Data = kerneltest.Fenced(t, (k-1)*b.RowStride+(n-1)*b.ColStride+1)
				copy(a.Data, kerneltest.Noise("a", len(a.Data)))
				copy(b.Data, kerneltest.Noise("b", len(b.Data)))
				want := make([]float32, m*n)
				plainProduct(tile.Numbers, m, n, k, 1, a, b, 0, tile.RowMajor(want, n), epilogue{})
				for _, with := range implementations() {
					for _, beta := range []float32{0, 1} { // C is zero, so that both give the same
						c := kerneltest.Fenced(t, m*n)
						with.product(m, n, k, 1, a, b, beta, tile.RowMajor(c, n), epilogue{})
						kerneltest.Compare(t, with.name, c, want)
					}
				}
			}
		}
	}
}
