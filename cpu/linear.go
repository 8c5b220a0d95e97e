package cpu

// linear: y = x·Wᵀ + b.
func linear(o *operands) error { return linearThen(o, addBias) }

// linearSigmoid: y = 1/(1+exp(-(x·Wᵀ + b))).
func linearSigmoid(o *operands) error { return linearThen(o, biasThenSigmoid) }

// linearReLU: y = max(x·Wᵀ + b, 0).
func linearReLU(o *operands) error { return linearThen(o, biasThenReLU) }

func linearThen(o *operands, then after) error {
	x, w, bias, y := o.in[0], o.in[1], o.in[2], o.out[0]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	gemmThen(false, true, m, n, k, 1, x, k, w, k, 0, y, n, epilogue{then: then, with: bias})
	return nil
}

// linearGradX: dx = dy·W.
func linearGradX(o *operands) error { return linearGradXThen(o, epilogue{}) }

// linearGradXSigmoid: dx = (dy·W)·y·(1-y).
func linearGradXSigmoid(o *operands) error {
	return linearGradXThen(o, epilogue{then: bySigmoid, with: o.in[2]})
}

// linearGradXReLU: dx = dy·W where y > 0, else 0.
func linearGradXReLU(o *operands) error {
	return linearGradXThen(o, epilogue{then: byReLU, with: o.in[2]})
}

func linearGradXThen(o *operands, e epilogue) error {
	dy, w, dx := o.in[0], o.in[1], o.out[0]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	gemmThen(false, false, m, k, n, 1, dy, n, w, k, 0, dx, k, e)
	return nil
}

// linearGradW: dW = dyᵀ·x, db = column sums of dy.
func linearGradW(o *operands) error { return linearGradWThen(o, epilogue{}) }

// linearGradWDecay: dW = dyᵀ·x + c·W, db = column sums of dy.
func linearGradWDecay(o *operands) error {
	return linearGradWThen(o, epilogue{then: addScaledWith, with: o.in[2], c: float32(o.attr)})
}

// linearGradWThen computes dyᵀ·x. Its transpose xᵀ·dy has rows as short as there are outputs, which fill fewer lanes of a vector: with
// ten outputs it would be half again slower.
func linearGradWThen(o *operands, e epilogue) error {
	x, dy, dw, db := o.in[0], o.in[1], o.out[0], o.out[1]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	gemmThen(true, false, n, k, m, 1, dy, n, x, k, 0, dw, k, e)
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
