package gemm

import (
	"fspda/cpu/tile"
)

// Multiply computes C = alpha·op(A)·op(B) + beta·C on the calling goroutine, as sgemm of the BLAS
// does for row-major matrices. op(X) is X, or Xᵀ if its trans is set; op(A) is m×k, op(B) k×n, C
// m×n, with rows lda, ldb and ldc numbers apart. C must not overlap A or B. It panics if a matrix
// does not fit into its slice, or if its rows overlap.
//
// Every element is defined to the last bit. The k products are cut into the fewest chunks of at
// most tile.Depth products, whose lengths differ by one at most, the longer ones first. In each
// chunk
//
//	s = +0;  s = fma(A[i][p], B[p][j], s) for ascending p;  C[i][j] = fma(alpha, s, b·C[i][j])
//
// where fma rounds once, b is beta in the first chunk and 1 in the others, and b·C is rounded; in a
// first chunk with beta = 0 it is C[i][j] = alpha·s, whatever C held. So the result depends on the
// operands only: not on addresses, cores, the instruction set, the architecture, or the rest of the
// product. The sign and the payload of a NaN are not defined. With k = 0 or alpha = 0 the result is
// beta·C, and A and B are not read.
//
// The error is bounded as in a sum, to first order:
//
//	|C − exact| ≤ (min(k,Depth) + ⌈k/Depth⌉ + 2)·2⁻²⁴·(|alpha|·|op(A)|·|op(B)| + |beta·C|)
func Multiply(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	g := call{transA: transA, transB: transB, m: m, n: n, k: k, alpha: alpha, a: a, lda: lda, b: b, ldb: ldb,
		beta: beta, c: c, ldc: ldc}
	g.run()
}

// scaleRows multiplies an m×n matrix by beta; a beta of zero overwrites.
func scaleRows(c tile.View, m, n int, beta float32) {
	for i := range m {
		row := c.Data[i*c.RowStride:][:n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}
