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
