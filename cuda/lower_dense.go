package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// blasTypes maps number types to cuBLAS's types.
var blasTypes = map[kernels.Element]cublas.Type{kernels.F32: cublas.Float32, kernels.F16: cublas.Float16,
	kernels.BF16: cublas.BFloat16}

// product sends output 0 = A·B, m×n, of inputs a and b.
func (x boundTask) product(m, n, k, a int, transA bool, b int, transB bool) error {
	return x.blas.Gemm(cublas.Product{M: m, N: n, K: k, TransA: transA, TransB: transB,
		A: driver.Pointer(x.in[a]), B: driver.Pointer(x.in[b]), C: driver.Pointer(x.out[0]),
		Type: blasTypes[x.Task.In[a].Element], TypeC: blasTypes[x.Element()], Compute: x.math})
}

// dense is the lowering of device.Linear, y = x·Wᵀ + b, with an activation.
func dense(then kernels.Activation) lowering {
	return func(l *lowerer, t *compiler.Task) (step, error) {
		n := t.Call.Dims
		f := productSpec{m: n[0], n: n[1], k: n[2], a: productInput{in: 0}, b: productInput{1, true},
			epilogue: cublas.EpilogueBias, bias: &t.In[2]}
		if then == kernels.ReLUOf {
			if made := l.denseReLU(t, f); made != nil {
				return made, nil
			}
		} else if by := l.matmul(t, f); by != nil {
			return ltDense(by, t, then), nil
		}
		return func(env *launchEnv) error {
			x := env.bind(t)
			m, n, k := x.dims[0], x.dims[1], x.dims[2]
			if err := x.product(m, n, k, 0, false, 1, true); err != nil {
				return err
			}
			return env.ex.Launch(kernels.Bias(x.Element(), x.out[0], x.bias(), m, n, then))
		}, nil
	}
}

// denseGradX is the lowering of device.LinearGradX, dx = dy·W, times the derivative of the
// activation before.
func denseGradX(before kernels.Activation) lowering {
	return func(l *lowerer, t *compiler.Task) (step, error) {
		if by := l.masked[t.Mask]; by != nil {
			return ltGradX(by, t), nil
		}
		return func(env *launchEnv) error {
			x := env.bind(t)
			m, n, k := x.dims[0], vocabulary(t), x.dims[2]
			if err := x.product(m, k, n, 0, false, 1, false); err != nil || before == kernels.Identity {
				return err
			}
			return env.ex.Launch(kernels.ActivateGrad(x.Element(), x.out[0], x.in[2], x.out[0], m*k, before))
		}, nil
	}
}

// denseGradW is the lowering of device.LinearGradW: dW = dyᵀ·x, db = column sums of dy; and of
// device.LinearGradWDecay, which adds c·W to dW.
func denseGradW(l *lowerer, t *compiler.Task) (step, error) {
	n := t.Call.Dims
	if len(t.Out) == 1 { // the bias has its gradient already
		return func(env *launchEnv) error {
			x := env.bind(t)
			return x.product(n[1], n[2], n[0], 1, true, 0, false)
		}, nil
	}
	if by := l.matmul(t, productSpec{m: n[1], n: n[2], k: n[0], a: productInput{1, true}, b: productInput{in: 0},
		epilogue: cublas.EpilogueBiasGrad, bias: &t.Out[1]}); by != nil {
		return ltGradW(by, t), nil
	}
	return func(env *launchEnv) error {
		x := env.bind(t)
		m, n, k := x.dims[0], x.dims[1], x.dims[2]
		if err := x.product(n, k, m, 1, true, 0, false); err != nil {
			return err
		}
		calls := []kernels.Call{kernels.ColumnSums(t.In[1].Element, x.out[1], x.in[1], m, n)}
		if t.Call.Kernel == device.LinearGradWDecay {
			calls = append(calls, x.decay(n*k))
		}
		return env.ex.Launch(calls...)
	}, nil
}

// decay returns the kernel that adds c·W to dW.
func (x boundTask) decay(n int) kernels.Call {
	c := float32(x.attr)
	if x.LacksScale != nil {
		return x.addScaled(x.out[0], x.in[2], c, n)
	}
	return kernels.Combine(x.out[0], n, kernels.Term{A: 1, V: x.out[0]}, kernels.Term{A: c, V: x.in[2]})
}
