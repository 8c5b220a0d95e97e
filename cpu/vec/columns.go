package vec

// rowBlock is how many rows are summed in one call.
const rowBlock = 512

// ColumnSums computes dst[j] = Σ_i a[i][j] of m rows, which begin stride numbers apart, in float64,
// from the first row to the last.
func ColumnSums(dst, a []float32, m, stride int) {
	for j := 0; j < len(dst); j += colBlock {
		var sums [colBlock]float64
		columns := min(colBlock, len(dst)-j)
		for i := 0; i < m; i += rowBlock {
			addColumns(&sums, a[i*stride+j:], min(rowBlock, m-i), stride, columns)
		}
		for l, s := range sums[:columns] {
			dst[j+l] = float32(s)
		}
	}
}

// RowSums computes dst[j] = Σ_i a[rows[i]][j] of rows that begin stride numbers apart, in float64, in
// the order of rows.
func RowSums(dst, a []float32, rows []int32, stride int) {
	for j := 0; j < len(dst); j += colBlock {
		var sums [colBlock]float64
		columns := min(colBlock, len(dst)-j)
		for _, r := range rows {
			addColumns(&sums, a[int(r)*stride+j:], 1, stride, columns)
		}
		for l, s := range sums[:columns] {
			dst[j+l] = float32(s)
		}
	}
}

// addColumnsGo adds the rows of a, which begin stride numbers apart, to sums. There is at least one
// row and one column.
func addColumnsGo(sums *[colBlock]float64, a []float32, rows, stride, columns int) {
	s := sums[:columns]
	for i := range rows {
		for j, v := range a[i*stride:][:columns] {
			s[j] += float64(v)
		}
	}
}
