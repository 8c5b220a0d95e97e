package cpu

import (
	"fspda/cpu/gemm"
)

// Gemm computes C = alpha·op(A)·op(B) + beta·C on the calling goroutine. See [gemm.Multiply].
func Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32,
	c []float32, ldc int) {
	gemm.Multiply(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}
