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

// addRow adds bias to dst, a row of as many columns.
func addRow(dst, bias []float32) {
	for j, b := range bias[:len(dst)] {
		dst[j] += b
	}
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

// columnSums computes dst[j] = Σ_i a[i][j] of a row-major m×n matrix in float64, eight columns at a time so that the
// accumulators stay in registers.
func columnSums(dst, a []float32, m, n int) {
	j := 0
	for ; j+8 <= n; j += 8 {
		var s [8]float64
		for i := range m {
			row := a[i*n+j:][:8]
			s[0] += float64(row[0])
			s[1] += float64(row[1])
			s[2] += float64(row[2])
			s[3] += float64(row[3])
			s[4] += float64(row[4])
			s[5] += float64(row[5])
			s[6] += float64(row[6])
			s[7] += float64(row[7])
		}
		for l, v := range s {
			dst[j+l] = float32(v)
		}
	}
	for ; j < n; j++ {
		s := 0.0
		for i := range m {
			s += float64(a[i*n+j])
		}
		dst[j] = float32(s)
	}
}
