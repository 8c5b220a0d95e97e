package gemm

import (
	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// Kernels are fully connected layers and their gradients: matrix products with an epilogue.
var Kernels = kernel.Table{
	device.Linear:             productKernel(forward, linear(addBias)),
	device.LinearSigmoid:      productKernel(forward, linear(biasSigmoid)),
	device.LinearReLU:         productKernel(forward, linear(biasReLU)),
	device.LinearGradX:        productKernel(toInput, linearGradX(noEpilogue)),
	device.LinearGradXSigmoid: productKernel(toInput, linearGradX(timesSigmoidGrad)),
	device.LinearGradXReLU:    productKernel(toInput, linearGradX(timesReLUGrad)),
	device.LinearGradW:        linearGradW,
	device.LinearGradWDecay:   withDecay(linearGradW),

	device.Product:             productKernel(forward, linear(noEpilogue)),
	device.ProductGradW:        productKernel(toWeights, gradW),
	device.LinearGELUTanh:      productKernel(forward, linearGELU(biasGELU, vec.Tanh)),
	device.LinearGELUErf:       productKernel(forward, linearGELU(biasGELU, vec.Erf)),
	device.ProductGELUTanh:     productKernel(forward, linearGELU(thenGELU, vec.Tanh)),
	device.ProductGELUErf:      productKernel(forward, linearGELU(thenGELU, vec.Erf)),
	device.LinearGradXGELUTanh: productKernel(toInput, linearGradXGELU(vec.Tanh)),
	device.LinearGradXGELUErf:  productKernel(toInput, linearGradXGELU(vec.Erf)),
}

// forward is the shape of x·Wᵀ, of x[m×k] and W[n×k], for the dimensions m n k of a kernel.
func forward(d []int) call {
	return call{transB: true, m: d[0], n: d[1], k: d[2], alpha: 1, lda: d[2], ldb: d[2], ldc: d[1]}
}

// toInput is the shape of dy·W.
func toInput(d []int) call {
	return call{m: d[0], n: d[2], k: d[1], alpha: 1, lda: d[1], ldb: d[2], ldc: d[2]}
}

// toWeights is the shape of dyᵀ·x. The transpose xᵀ·dy has rows as short as the number of outputs,
// which fill fewer lanes of a vector: with ten outputs it takes one and a half times as long.
func toWeights(d []int) call {
	return call{transA: true, m: d[1], n: d[2], k: d[0], alpha: 1, lda: d[1], ldb: d[2], ldc: d[2]}
}

// pooled returns the numbers of memory that a product of a shape takes from the pools.
func pooled(shape func(dims []int) call) func(dims []int, threads int) int {
	return func(dims []int, threads int) int {
		g := shape(dims)
		parts := g.parts(threads)
		if g.m >= g.n {
			g.m = (g.m + parts - 1) / parts
		} else {
			g.n = (g.n + parts - 1) / parts
		}
		return parts * g.workspace()
	}
}

// together returns the numbers of scratch memory for the factor of a product of a shape that
// goroutines pack together.
func together(shape func(dims []int) call) func(dims []int, threads int) int {
	return func(dims []int, threads int) int {
		g := shape(dims)
		return g.togetherSize(threads)
	}
}

// productKernel returns a kernel that computes one matrix product, in parts.
func productKernel(shape func(dims []int) call, call func(o *kernel.Args) call) kernel.Kernel {
	return kernel.Kernel{Pooled: pooled(shape), Scratch: together(shape),
		Run: productRun(call, func(*kernel.Args, int, int) {})}
}

// productRun returns a function that computes a product, in parts, and more work, in as many parts.
// Where goroutines pack op(B) together and parts are rows of C, more comes just before each part:
// the rows of op(A) that it reads are then in the second-level cache when the part packs them.
func productRun(call func(o *kernel.Args) call, more func(o *kernel.Args, part, of int)) func(o *kernel.Args) error {
	run := func(o *kernel.Args, part, of int) {
		g := call(o)
		p := g.part(part, of, 1)
		p.run()
		more(o, part, of)
	}
	pack := func(o *kernel.Args, part, of int) {
		g := call(o)
		g.packTogether(o.Scratch[g.words:], part, of)
		if g.m < g.n {
			more(o, part, of)
		}
	}
	runPacked := func(o *kernel.Args, part, of int) {
		g := call(o)
		if g.m >= g.n {
			more(o, part, of)
		}
		g.runPacked(o.Scratch[g.words:], part, of)
	}
	return func(o *kernel.Args) error {
		g, threads := call(o), o.Threads()
		if size := g.togetherSize(threads); size > 0 && size <= len(o.Scratch)-g.words {
			o.Parallel(threads, pack)
			o.Parallel(threads*g.finer(threads), runPacked)
		} else {
			o.Parallel(g.parts(threads), run)
		}
		return nil
	}
}

// linear: y = then(x·Wᵀ + b).
func linear(then epilogueOp) func(o *kernel.Args) call {
	return func(o *kernel.Args) call {
		g := forward(o.Dims)
		g.a, g.b, g.c, g.bytesA, g.epilogue.op = o.In[0], o.In[1], o.Out[0], o.InputBytes(), then
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
		g := toInput(o.Dims)
		g.a, g.b, g.c, g.epilogue = o.In[0], o.In[1], o.Out[0], e
		return g
	}
}

// gradW: dW = dyᵀ·x.
func gradW(o *kernel.Args) call {
	g := toWeights(o.Dims)
	g.a, g.b, g.c, g.bytesB = o.In[1], o.In[0], o.Out[0], o.InputBytes()
	return g
}

// linearGradW: dW = dyᵀ·x, db = column sums of dy.
var linearGradW = kernel.Kernel{Run: productRun(gradW, gradBias), Pooled: pooled(toWeights),
	Scratch: together(toWeights)}

// gradBias computes a part of the column sums.
func gradBias(o *kernel.Args, part, of int) {
	from, to := kernel.SplitUnits(part, of, len(o.Out[1]), kernel.LineFloats)
	vec.ColumnSums(o.Out[1][from:to], o.In[1][from:], o.Dims[0], o.Dims[1])
}

// withDecay returns linearGradW with a decay: dW = dyᵀ·x + c·W, db = column sums of dy. The decay
// is added in one pass over dW: in pieces between the products it takes three times as long.
func withDecay(gradW kernel.Kernel) kernel.Kernel {
	without := gradW.Run
	gradW.Run = func(o *kernel.Args) error {
		if err := without(o); err != nil {
			return err
		}
		o.ParallelRange(len(o.Out[0]), gradWDecayPart)
		return nil
	}
	return gradW
}

func gradWDecayPart(o *kernel.Args, part, of int) {
	dw, w := o.Out[0], o.In[2]
	from, to := kernel.SplitUnits(part, of, len(dw), kernel.LineFloats)
	vec.AddScaled(dw[from:to], dw[from:to], float32(o.Attr), w[from:to], false)
}
