package gemm

import (
	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// Kernels are fully connected layers and their gradients: matrix products with an epilogue.
var Kernels = kernel.Table{
	device.Linear:             productKernel(linear(addBias)),
	device.LinearSigmoid:      productKernel(linear(biasSigmoid)),
	device.LinearReLU:         productKernel(linear(biasReLU)),
	device.LinearGradX:        productKernel(linearGradX(noEpilogue)),
	device.LinearGradXSigmoid: productKernel(linearGradX(timesSigmoidGrad)),
	device.LinearGradXReLU:    productKernel(linearGradX(timesReLUGrad)),
	device.LinearGradW:        {Run: linearGradW},
	device.LinearGradWDecay:   {Run: linearGradWDecay},

	device.Product:             productKernel(linear(noEpilogue)),
	device.ProductGradW:        productKernel(gradW),
	device.LinearGELUTanh:      productKernel(linearGELU(biasGELU, vec.Tanh)),
	device.LinearGELUErf:       productKernel(linearGELU(biasGELU, vec.Erf)),
	device.ProductGELUTanh:     productKernel(linearGELU(thenGELU, vec.Tanh)),
	device.ProductGELUErf:      productKernel(linearGELU(thenGELU, vec.Erf)),
	device.LinearGradXGELUTanh: productKernel(linearGradXGELU(vec.Tanh)),
	device.LinearGradXGELUErf:  productKernel(linearGradXGELU(vec.Erf)),
}

// productKernel returns a kernel that computes one matrix product, in parts.
func productKernel(call func(o *kernel.Args) call) kernel.Kernel {
	run := func(o *kernel.Args, part, of int) {
		g := call(o)
		p := g.part(part, of)
		p.run()
	}
	return kernel.Kernel{Run: func(o *kernel.Args) error {
		g := call(o)
		o.Parallel(g.parts(o.Threads()), run)
		return nil
	}}
}

// linear: y = then(x·Wᵀ + b).
func linear(then epilogueOp) func(o *kernel.Args) call {
	return func(o *kernel.Args) call {
		x, w, y := o.In[0], o.In[1], o.Out[0]
		m, n, k := o.Dims[0], o.Dims[1], o.Dims[2]
		g := call{transB: true, m: m, n: n, k: k, alpha: 1, a: x, lda: k, b: w, ldb: k, c: y, ldc: n,
			epilogue: epilogue{op: then}, bytesA: o.InputBytes()}
		if len(o.In) > 2 {
			g.epilogue.operand = o.In[2]
		}
		return g
	}
}

// linearGELU: z = x·Wᵀ + b, y = GELU(z).
func linearGELU(then epilogueOp, form vec.GELUForm) func(o *kernel.Args) call {
	product := linear(then)
	return func(o *kernel.Args) call {
		g := product(o)
		g.epilogue.form, g.epilogue.result = form, o.Out[1]
		return g
	}
}

// linearGradXGELU: dx = dy·W times the derivative of GELU at z.
func linearGradXGELU(form vec.GELUForm) func(o *kernel.Args) call {
	product := linearGradX(timesGELUGrad)
	return func(o *kernel.Args) call {
		g := product(o)
		g.epilogue.form = form
		return g
	}
}

// linearGradX: dx = dy·W; with timesSigmoidGrad times y·(1-y); with timesReLUGrad 0 unless y > 0.
func linearGradX(then epilogueOp) func(o *kernel.Args) call {
	return func(o *kernel.Args) call {
		e := epilogue{op: then}
		if then != noEpilogue {
			e.operand = o.In[2]
		}
		dy, w, dx := o.In[0], o.In[1], o.Out[0]
		m, n, k := o.Dims[0], o.Dims[1], o.Dims[2]
		return call{m: m, n: k, k: n, alpha: 1, a: dy, lda: n, b: w, ldb: k, c: dx, ldc: k, epilogue: e}
	}
}

// gradW: dW = dyᵀ·x. The transpose xᵀ·dy has rows as short as the number of outputs, which fill
// fewer lanes of a vector: with ten outputs it takes one and a half times as long.
func gradW(o *kernel.Args) call {
	x, dy, dw := o.In[0], o.In[1], o.Out[0]
	m, n, k := o.Dims[0], o.Dims[1], o.Dims[2]
	return call{transA: true, m: n, n: k, k: m, alpha: 1, a: dy, lda: n, b: x, ldb: k, c: dw, ldc: k,
		bytesB: o.InputBytes()}
}

// linearGradW: dW = dyᵀ·x, db = column sums of dy.
func linearGradW(o *kernel.Args) error {
	g := gradW(o)
	if parts := g.parts(o.Threads()); parts > 1 {
		o.Parallel(parts+1, gradWPart)
		return nil
	}
	g.run()
	vec.ColumnSums(o.Out[1], o.In[1], o.Dims[0], o.Dims[1])
	return nil
}

// gradWPart computes a part of the product, and as the last part the column sums.
func gradWPart(o *kernel.Args, part, of int) {
	if part < of-1 {
		g := gradW(o)
		p := g.part(part, of-1)
		p.run()
		return
	}
	vec.ColumnSums(o.Out[1], o.In[1], o.Dims[0], o.Dims[1])
}

// linearGradWDecay: dW = dyᵀ·x + c·W, db = column sums of dy. The decay is added in one pass over
// dW: in pieces between the products it takes three times as long.
func linearGradWDecay(o *kernel.Args) error {
	if err := linearGradW(o); err != nil {
		return err
	}
	o.ParallelRange(len(o.Out[0]), gradWDecayPart)
	return nil
}

func gradWDecayPart(o *kernel.Args, part, of int) {
	dw, w := o.Out[0], o.In[2]
	from, to := kernel.SplitUnits(part, of, len(dw), kernel.LineFloats)
	vec.AddScaled(dw[from:to], dw[from:to], float32(o.Attr), w[from:to], false)
}
