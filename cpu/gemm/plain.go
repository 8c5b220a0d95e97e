package gemm

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// plainProduct is the definition of the product in Go, and runs where there is no assembly. The
// assembly is bit-identical.
func plainProduct(kind tile.Kind, m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View,
	then epilogue) {
	for chunk := range tile.Chunks(k) {
		p, depth := kernel.Split(chunk, tile.Chunks(k), k)
		if p > 0 {
			beta = 1
		}
		for i := 0; i < m; i += tile.PlainRows {
			for j := 0; j < n; j += tile.PlainCols {
				kind.Plain(min(tile.PlainRows, m-i),
					min(tile.PlainCols, n-j), depth, alpha, a.From(i, p), b.From(p, j), beta, c.From(i, j))
			}
		}
	}
	then.apply(0, 0, m, n, c)
}
