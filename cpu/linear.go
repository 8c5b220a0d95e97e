package cpu

import "fspda/device"

// linearKernels are fully connected layers and their gradients, each of which is a matrix product and what follows it.
var linearKernels = table{
	device.Linear:             productKernel(linear(addBias)),
	device.LinearSigmoid:      productKernel(linear(biasThenSigmoid)),
	device.LinearReLU:         productKernel(linear(biasThenReLU)),
	device.LinearGradX:        productKernel(linearGradX(nothing)),
	device.LinearGradXSigmoid: productKernel(linearGradX(bySigmoid)),
	device.LinearGradXReLU:    productKernel(linearGradX(byReLU)),
	device.LinearGradW:        {run: linearGradW},
	device.LinearGradWDecay:   {run: linearGradWDecay},
}

// productKernel is a kernel that computes one matrix product in parts.
func productKernel(call func(o *operands) gemmCall) kernel {
	run := func(o *operands, part, of int) {
		g := call(o)
		p := g.part(part, of)
		p.run()
	}
	return kernel{run: func(o *operands) error {
		g := call(o)
		o.parallel(g.parts(o.threads()), run)
		return nil
	}}
}

// linear: y = then(x·Wᵀ + b).
func linear(then after) func(o *operands) gemmCall {
	return func(o *operands) gemmCall {
		x, w, bias, y := o.in[0], o.in[1], o.in[2], o.out[0]
		m, n, k := o.dims[0], o.dims[1], o.dims[2]
		return gemmCall{transB: true, m: m, n: n, k: k, alpha: 1, a: x, lda: k, b: w, ldb: k, c: y, ldc: n, then: epilogue{then: then, with: bias},
			codedA: o.byteInput()}
	}
}

// linearGradX: dx = dy·W, times (dy·W)·y·(1-y) with bySigmoid, or where y > 0, else 0, with byReLU.
func linearGradX(then after) func(o *operands) gemmCall {
	return func(o *operands) gemmCall {
		e := epilogue{then: then}
		if then != nothing {
			e.with = o.in[2]
		}
		dy, w, dx := o.in[0], o.in[1], o.out[0]
		m, n, k := o.dims[0], o.dims[1], o.dims[2]
		return gemmCall{m: m, n: k, k: n, alpha: 1, a: dy, lda: n, b: w, ldb: k, c: dx, ldc: k, then: e}
	}
}

// gradW: dW = dyᵀ·x. The transpose xᵀ·dy has rows as short as there are outputs, which fill fewer lanes of a
// vector: with ten outputs it would be half again slower.
func gradW(o *operands) gemmCall {
	x, dy, dw := o.in[0], o.in[1], o.out[0]
	m, n, k := o.dims[0], o.dims[1], o.dims[2]
	return gemmCall{transA: true, m: n, n: k, k: m, alpha: 1, a: dy, lda: n, b: x, ldb: k, c: dw, ldc: k, codedB: o.byteInput()}
}

// linearGradW: dW = dyᵀ·x, db = column sums of dy.
func linearGradW(o *operands) error {
	g := gradW(o)
	if parts := g.parts(o.threads()); parts > 1 {
		o.parallel(parts+1, gradWPart)
		return nil
	}
	g.run()
	columnSums(o.out[1], o.in[1], o.dims[0], o.dims[1])
	return nil
}

// gradWPart is a part of the product, and, as the last part, the column sums.
func gradWPart(o *operands, part, of int) {
	if part < of-1 {
		g := gradW(o)
		p := g.part(part, of-1)
		p.run()
		return
	}
	columnSums(o.out[1], o.in[1], o.dims[0], o.dims[1])
}

// linearGradWDecay: dW = dyᵀ·x + c·W, db = column sums of dy. The decay is added to all of dW at once: in pieces between the products it
// takes three times as long.
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
