package tile

// Plain computes depth products for rows×cols elements of C. At the edge of C it reads the last row
// or column more than once, so that all tiles have one size.
func Plain(rows, cols, depth int, alpha float32, a, b View, beta float32, c View) {
	Numbers.Plain(rows, cols, depth, alpha, a, b, beta, c)
}

// Plain is the function Plain for factors of a kind.
func (k Kind) Plain(rows, cols, depth int, alpha float32, a, b View, beta float32, c View) {
	var row [PlainRows]int
	for i := range row {
		row[i] = min(i, rows-1) * a.RowStride
	}
	var col [PlainCols]int
	for j := range col {
		col[j] = min(j, cols-1) * b.ColStride
	}
	sums := plainSums
	switch k {
	case Pairs:
		sums = definitionOfPairs
	case Dots:
		sums = pairSums
	}
	plainTile(sums(depth, a, row, b, col), rows, cols, alpha, beta, c)
}

// plainTile writes C = alpha·s + beta·C.
func plainTile(s [PlainRows][PlainCols]float32, rows, cols int, alpha, beta float32, c View) {
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
