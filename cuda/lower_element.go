package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

func activate(f kernels.Activation) lowering {
	return oneKernel(func(x boundTask) kernels.Call {
		return kernels.Activate(x.Element(), x.out[0], x.in[0], x.dims[0], f)
	})
}

func activateGrad(f kernels.Activation) lowering {
	return oneKernel(func(x boundTask) kernels.Call {
		return kernels.ActivateGrad(x.Element(), x.out[0], x.in[0], x.in[1], x.dims[0], f)
	})
}

// crossEntropy is the lowering of device.SoftmaxCrossEntropy, also with the products around it.
func crossEntropy(l *lowerer, t *compiler.Task) (step, error) {
	if t.Pieces == nil {
		return labelLowering(softmaxCrossEntropy)(l, t)
	}
	return lossPieces(t), checkLabels(t)
}

func softmaxCrossEntropy(x boundTask) []kernels.Call {
	if x.Vocabulary > 0 {
		loss := x.wideLoss(x.in[0], x.in[1])
		loss.DLogits = x.out[1]
		return loss.Calls()
	}
	return kernels.SoftmaxCrossEntropy(x.out[0], x.out[1], x.in[0], x.in[1], x.scratch, x.scalars.bad, x.dims[0],
		x.dims[1], x.attr)
}

func softmaxCrossEntropyMixed(x boundTask) []kernels.Call {
	return kernels.SoftmaxCrossEntropyMixed(x.out[0], x.out[1], x.in[0], x.in[1], x.scratch, x.scalars.bad, x.dims[0],
		x.dims[1], x.attr)
}

// wideLoss returns the loss of a large vocabulary, whose gradient replaces the logits.
func (x boundTask) wideLoss(logits, labels kernels.Address) *kernels.WideLoss {
	s := &kernels.WideLoss{Element: x.Task.In[0].Element, M: x.dims[0], N: x.dims[1], Padded: x.Vocabulary,
		Smoothing: x.attr, Logits: logits, Labels: labels, Loss: x.out[0], DLogits: logits, RowLoss: x.scratch,
		Bad: x.scalars.bad}
	if x.ScalesLoss {
		s.Scaler = x.scaler
	}
	return s
}

// lossPieces is the lowering of a loss with the products around it.
func lossPieces(t *compiler.Task) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		m, n, k := x.dims[0], x.Vocabulary, x.In[0].Len/x.dims[0]
		input, weights, dx, dw, logits := x.in[0], x.in[1], x.out[1], x.out[2], x.out[3]
		loss := x.wideLoss(logits, x.in[2])
		half := blasTypes[x.In[0].Element]
		at := func(a kernels.Address, row int, e kernels.Element) driver.Pointer {
			return driver.Pointer(a) + driver.Pointer(row*k*e.Size())
		}
		for row := 0; row < m; row += x.Pieces.Rows {
			rows := min(x.Pieces.Rows, m-row)
			h := at(input, row, x.In[0].Element)
			p := cublas.Product{M: rows, N: n, K: k, TransB: true, A: h, B: driver.Pointer(weights),
				C: driver.Pointer(logits), Type: half, TypeC: half, Compute: x.math}
			if err := x.blas.Gemm(p); err != nil {
				return err
			}
			if err := env.ex.Launch(loss.Rows(row, rows)); err != nil {
				return err
			}
			toX := cublas.Product{M: rows, N: k, K: n, A: driver.Pointer(logits), B: driver.Pointer(weights),
				C: at(dx, row, x.Out[1].Element), Type: half, TypeC: blasTypes[x.Out[1].Element], Compute: x.math}
			toW := cublas.Product{M: n, N: k, K: rows, TransA: true, A: driver.Pointer(logits), B: h,
				C: driver.Pointer(dw), Type: half, TypeC: cublas.Float32, Compute: x.math, Add: row > 0}
			for _, p := range []cublas.Product{toX, toW} {
				if err := x.blas.Gemm(p); err != nil {
					return err
				}
			}
		}
		return env.ex.Launch(loss.Mean())
	}
}

func score(x boundTask) []kernels.Call {
	return kernels.Score(x.out[0], x.in[0], x.in[1], x.scratch, x.scalars.hits, x.scalars.bad, x.dims[0], x.dims[1])
}

func halfSquare(x boundTask) []kernels.Call {
	calls := kernels.Dot(0, x.out[0], x.in[0], x.in[0], x.scratch, x.dims[0], x.attr/2)
	return calls[:]
}

func scale(x boundTask) kernels.Call {
	if e := x.Element(); e != kernels.F32 {
		return kernels.WeightedSum(e, x.out[0], x.in[0], 0, float32(x.attr), 0, x.dims[0])
	}
	return kernels.Combine(x.out[0], x.dims[0], kernels.Term{A: float32(x.attr), V: x.in[0]})
}

// sum is the lowering of device.Add and device.AddScaled.
func sum(x boundTask) kernels.Call {
	c := float32(1)
	if x.Call.Kernel == device.AddScaled {
		c = float32(x.attr)
	}
	n := x.dims[0]
	switch e := x.Element(); {
	case x.LacksScale != nil:
		return x.addScaled(x.in[0], x.in[1], c, n)
	case e != kernels.F32:
		return kernels.WeightedSum(e, x.out[0], x.in[0], x.in[1], 1, c, n)
	case x.Call.Kernel == device.Add:
		return kernels.Add(x.out[0], x.in[0], x.in[1], n)
	}
	return kernels.Combine(x.out[0], n, kernels.Term{A: 1, V: x.in[0]}, kernels.Term{A: c, V: x.in[1]})
}

// addScaled returns the kernel of output 0 = a + c·b, where the summand that lacks the loss scale
// is multiplied by it.
func (x boundTask) addScaled(a, b kernels.Address, c float32, n int) kernels.Call {
	var by [2]kernels.Address
	for i, lacks := range x.LacksScale {
		if lacks {
			by[i] = x.scaler
		}
	}
	return kernels.ScaledSum(x.out[0], a, b, by[0], by[1], 1, c, n)
}
