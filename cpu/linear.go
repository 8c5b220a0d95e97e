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
	o.product(gemmCall{transB: true, m: m, n: n, k: k, alpha: 1, a: x, lda: k, b: w, ldb: k, c: y, ldc: n, then: epilogue{then: then, with: bias}})
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
	o.product(gemmCall{m: m, n: k, k: n, alpha: 1, a: dy, lda: n, b: w, ldb: k, c: dx, ldc: k, then: e})
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
	o.gemm = gemmCall{transA: true, m: n, n: k, k: m, alpha: 1, a: dy, lda: n, b: x, ldb: k, c: dw, ldc: k, then: e}
	if parts := o.gemm.parts(o.threads()); parts > 1 {
		o.parallel(parts+1, gradWPart)
	} else {
		o.gemm.run()
		columnSums(db, dy, m, n)
	}
	o.gemm = gemmCall{}
	return nil
}

// gradWPart is a part of the product, and, as the last part, the column sums.
func gradWPart(o *operands, part, of int) {
	if part < of-1 {
		gemmPart(o, part, of-1)
		return
	}
	columnSums(o.out[1], o.in[1], o.dims[0], o.dims[1])
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
