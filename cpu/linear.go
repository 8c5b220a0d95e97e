package cpu

// linear: y = x·Wᵀ + b.
func linear(o *operands) error {
	x, w, bias, y := o.in[0], o.in[1], o.in[2], o.out[0]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	gemm(false, true, m, n, k, 1, x, k, w, k, 0, y, n)
	for i := range m {
		addRow(y[i*n:(i+1)*n], bias)
	}
	return nil
}

// linearGradX: dx = dy·W.
func linearGradX(o *operands) error {
	dy, w, dx := o.in[0], o.in[1], o.out[0]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	gemm(false, false, m, k, n, 1, dy, n, w, k, 0, dx, k)
	return nil
}

// linearGradW: dW = dyᵀ·x, db = column sums of dy. Its transpose xᵀ·dy has rows as short as there are outputs, which fill fewer lanes
// of a vector: with ten outputs it would be half again slower.
func linearGradW(o *operands) error {
	x, dy, dw, db := o.in[0], o.in[1], o.out[0], o.out[1]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	gemm(true, false, n, k, m, 1, dy, n, x, k, 0, dw, k)
	columnSums(db, dy, m, n)
	return nil
}

// rowBlock is how many rows are summed in one call.
const rowBlock = 512

// columnSums computes dst[j] = Σ_i a[i][j] of a row-major m×n matrix in float64, from the first row to the last.
func columnSums(dst, a []float32, m, n int) {
	for j := 0; j < n; j += colBlock {
		var sums [colBlock]float64
		columns := min(colBlock, n-j)
		for i := 0; i < m; i += rowBlock {
			addColumns(&sums, a[i*n+j:], min(rowBlock, m-i), n, columns)
		}
		for l, s := range sums[:columns] {
			dst[j+l] = float32(s)
		}
	}
}

// addColumnsGo adds the rows of a, which begin stride numbers apart, to sums. There is at least one row and one column.
func addColumnsGo(sums *[colBlock]float64, a []float32, rows, stride, columns int) {
	s := sums[:columns]
	for i := range rows {
		for j, v := range a[i*stride:][:columns] {
			s[j] += float64(v)
		}
	}
}
