package cpu

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Pieces of C, each small enough (fewer than four blocks of 64×64) that gonum computes it on the calling goroutine: the agents
// of a run already occupy every core, and a result must not depend on how many there are.
const (
	gemmRows    = 64
	gemmColumns = 128
)

// gemm computes C = alpha·op(A)·op(B) + beta·C on the calling goroutine. op(X) is X, or Xᵀ where its trans is set; op(A) is m×k,
// op(B) k×n, C m×n, all row-major with rows lda, ldb and ldc apart. beta = 0 overwrites C whatever it held. Equal operands
// give equal bits where their addresses are equal modulo 16: gonum's dot product, which A·Bᵀ stands on, starts its vector loop at such an
// address and so sums in another order elsewhere. That is why vectors and arenas are aligned (memory.go). A factor of exactly zero in A may skip its row of B, so 0·Inf may count as 0.
func gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	for i := 0; i < m; i += gemmRows {
		ai := i * lda
		if transA {
			ai = i
		}
		rows := min(gemmRows, m-i)
		for j := 0; j < n; j += gemmColumns {
			bj := j
			if transB {
				bj = j * ldb
			}
			columns := min(gemmColumns, n-j)
			gonum.Implementation{}.Sgemm(trans(transA), trans(transB), rows, columns, k,
				alpha, a[ai:], lda, b[bj:], ldb, beta, c[i*ldc+j:], ldc)
		}
	}
}

func trans(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}
