package cpu

// productPlain is gemmThen in Go: its meaning, and the product where there is no assembly. The
// assembly gives the same bits.
func productPlain(m, n, k int, alpha float32, a, b view, beta float32, c view, then epilogue) {
	for chunk := range gemmChunks(k) {
		p, depth := share(chunk, gemmChunks(k), k)
		if p > 0 {
			beta = 1
		}
		for i := 0; i < m; i += plainRows {
			for j := 0; j < n; j += plainCols {
				plainTile(min(plainRows, m-i), min(plainCols, n-j), depth, alpha, a.from(i, p), b.from(p, j), beta,
					c.from(i, j))
			}
		}
	}
	then.apply(0, 0, m, n, c)
}

// plainTile computes one block of depth products for rows×cols elements of C. A tile at the edge of
// C has its last row or column more than once, so that all tiles are of one size.
func plainTile(rows, cols, depth int, alpha float32, a, b view, beta float32, c view) {
	var row [plainRows]int
	for i := range row {
		row[i] = min(i, rows-1) * a.rs
	}
	var col [plainCols]int
	for j := range col {
		col[j] = min(j, cols-1) * b.cs
	}
	s := plainSums(depth, a, row, b, col)
	for i := range rows {
		out := c.data[i*c.rs:][:cols]
		for j, old := range out {
			if beta == 0 {
				out[j] = alpha * s[i][j]
			} else {
				out[j] = float32(fused(float64(alpha), float64(s[i][j]), float64(float32(beta*old))))
			}
		}
	}
}
