package gemm

import (
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// transposedRows is how many rows of C are computed as columns at a time.
const transposedRows = blockCols

// transposedBuffer holds those columns. It is not part of workspace, which the inner product uses
// too: pooled workspaces would then often lack the larger buffer.
type transposedBuffer struct{ c []float32 }

var transposedBuffers = sync.Pool{New: func() any { return new(transposedBuffer) }}

// worthTransposing reports whether C is faster to compute as (Bᵀ·Aᵀ)ᵀ, which is bit-identical:
// products commute, and sums are in the order of k. That is so if C has few columns in addition
// to whole vectors, so that lanes would stay idle. Costs are in multiply-adds of whole vectors, two
// of which a processor does at a time.
func worthTransposing(s *tile.Set, m, n, k int, a, b tile.View, beta float32) bool {
	switch {
	case s.RowsOnly || beta != 0 || m < 2*s.Lanes:
		return false
	case isFew(s, m, n, a, b):
		return true
	case n%s.Lanes == 0 || n > maxTransposedCols:
		return false
	}
	const chains = 4 // rows of a tile that keep the multipliers busy
	whole := func(n int) int { return (n + s.Lanes - 1) / s.Lanes }
	// additional numbers to move; moving two costs as much as a multiply-add, within the
	// second-level cache
	moved := 0
	if shouldPackB(b, m) {
		moved -= n * k
	}
	if a.ColStride == 1 {
		moved += m * k
	}
	return max(n, chains)*k*whole(m)+(moved+m*n)/2 < m*k*whole(n)
}

// isFew reports whether a transposed B would be packed for so few rows of C that packing A is
// cheaper. Rows of Cᵀ whose columns are 2 KB apart or more are slow to store.
func isFew(s *tile.Set, m, n int, a, b tile.View) bool {
	const slow = 512
	return s.Lanes == 16 && b.ColStride != 1 && a.ColStride == 1 && m <= tuned.fewRows && n > maxTransposedCols &&
		(m <= 2*s.Lanes || n%slow != 0)
}

// maxTransposedCols is the largest number of columns of C for which idle lanes matter.
const maxTransposedCols = 160

// transposedProduct computes a product with beta = 0, in groups of rows of C that it computes as
// columns of the transpose. op(A) is a, or e if that has bytes.
func transposedProduct(s *tile.Set, m, n, k int, alpha float32, a tile.View, e kernel.ByteMatrix, b, c tile.View,
	then epilogue) {
	buf := transposedBuffers.Get().(*transposedBuffer)
	buf.c = kernel.Grow(buf.c, n*transposedRows)
	for i := 0; i < m; i += transposedRows {
		rows := min(transposedRows, m-i)
		t := tile.RowMajor(buf.c, rows)
		bT, aT, eT := b.T(), tile.View{}, kernel.ByteMatrix{}
		if e.Bytes != nil {
			eT = e.From(i, 0).Transpose()
		} else {
			part := a.From(i, 0)
			aT = part.T()
		}
		blockedProduct(s, n, rows, k, alpha, bT, aT, eT, 0, t, epilogue{}, packedFactors{})
		out := c.From(i, 0)
		storeTransposed(out, t, rows, n)
		then.apply(i, 0, rows, n, out)
	}
	transposedBuffers.Put(buf)
}

// storeTransposed writes rows×cols elements of c, and no other: c[i][j] = t[j][i].
func storeTransposed(c, t tile.View, rows, cols int) {
	whole := cols &^ 7
	if whole > 0 {
		tile.PackTransposed(c.Data, c.RowStride, t, whole, rows)
	}
	for j := whole; j < cols; j++ {
		for i, v := range t.Data[j*t.RowStride:][:rows] {
			c.Data[i*c.RowStride+j] = v
		}
	}
}
