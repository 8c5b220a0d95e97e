package attention

import (
	"math"

	"fspda/cpu/tile"
)

var minusInf = float32(math.Inf(-1))

// plainMultiply computes C = alpha·A·B + beta·C in Go, each element with one chain of fused
// multiply-adds as in fspda/cpu/gemm.
func plainMultiply(rows, cols, depth int, alpha float32, a, b tile.View, beta float32, c tile.View) {
	for i := 0; i < rows; i += tile.PlainRows {
		for j := 0; j < cols; j += tile.PlainCols {
			tile.Plain(min(tile.PlainRows, rows-i), min(tile.PlainCols, cols-j), depth, alpha, a.From(i, 0),
				b.From(0, j), beta, c.From(i, j))
		}
	}
}
