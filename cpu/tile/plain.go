package tile

// Plain computes depth products for rows×cols elements of C. At the edge of C it reads the last row
// or column more than once, so that all tiles have one size.
func Plain(rows, cols, depth int, alpha float32, a, b View, beta float32, c View) {
	var row [PlainRows]int
	for i := range row {
		row[i] = min(i, rows-1) * a.RowStride
	}
	var col [PlainCols]int
	for j := range col {
		col[j] = min(j, cols-1) * b.ColStride
	}
	s := plainSums(depth, a, row, b, col)
	for i := range rows {
		out := c.Data[i*c.RowStride:][:cols]
		for j, old := range out {
			if beta == 0 {
				out[j] = alpha * s[i][j]
			} else {
				out[j] = float32(FMA(float64(alpha), float64(s[i][j]), float64(float32(beta*old))))
			}
		}
	}
}
