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
	o.product(gemmCall{transB: true, m: m, n: n, k: k, alpha: 1, a: x, lda: k, b: w, ldb: k, c: y, ldc: n,
		then:   epilogue{then: then, with: bias},
		codedA: o.bytes()})
	return nil
}

// bytes is the first input where that is the batch's bytes, else nothing.
func (o *operands) bytes() coded {
	if o.in[0] != nil || o.examples == nil {
		return coded{}
	}
	return o.examples.coded
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

// linearGradW: dW = dyᵀ·x, db = column sums of dy. The transpose xᵀ·dy has rows as short as there
// are outputs, which fill fewer lanes of a vector: with ten outputs it would be half again slower.
func linearGradW(o *operands) error {
	x, dy, dw, db := o.in[0], o.in[1], o.out[0], o.out[1]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	o.gemm = gemmCall{transA: true, m: n, n: k, k: m, alpha: 1, a: dy, lda: n, b: x, ldb: k, c: dw, ldc: k,
		codedB: o.bytes()}
	if parts := o.gemm.parts(o.threads()); parts > 1 {
		o.parallel(parts+1, gradWPart)
	} else {
		o.gemm.run()
		columnSums(db, dy, m, n)
	}
	o.gemm = gemmCall{}
	return nil
}

// linearGradWDecay: dW = dyᵀ·x + c·W, db = column sums of dy. The decay is added to all of dW at
// once: in pieces between the products it takes three times as long.
func linearGradWDecay(o *operands) error {
	if err := linearGradW(o); err != nil {
		return err
	}
	o.eachRange(len(o.out[0]), gradWDecayPart)
	return nil
}

func gradWDecayPart(o *operands, part, of int) {
	dw, w := o.out[0], o.in[2]
	from, to := portion(part, of, len(dw), perLine)
	addScaleds(dw[from:to], dw[from:to], float32(o.attr), w[from:to], false)
}

// gradWPart is a part of the product, and, as the last part, the column sums.
func gradWPart(o *operands, part, of int) {
	if part < of-1 {
		gemmPart(o, part, of-1)
		return
	}
	columnSums(o.out[1], o.in[1], o.dims[0], o.dims[1])
}

// rowBlock is how many rows are summed in one call.
const rowBlock = 512

// columnSums computes dst[j] = Σ_i a[i][j] of a row-major m×n matrix in float64, from the first row
// to the last.
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
