package cpu

import (
	"fspda/cpu/gemm"
)

// Gemm computes C = alpha·op(A)·op(B) + beta·C on the calling goroutine, as sgemm of the BLAS does
// for row-major matrices. op(X) is X, or Xᵀ where its trans is set; op(A) is m×k, op(B) k×n, C m×n,
// with rows lda, ldb and ldc numbers apart in a, b and c. C overlaps neither factor. With beta = 0
// whatever C held is lost, NaN included; k = 0 or alpha = 0 look at neither factor.
//
// Every element is the same to the last bit on every machine: see gemm.go for its definition. It
// panics if a matrix does not fit into its slice, or if its rows overlap.
func Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32,
	c []float32, ldc int) {
	gemm.Multiply(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}
