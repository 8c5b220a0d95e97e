package cpu

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
