package cuda

import (
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// product sends C = A·B of matrices of float32.
func (r *running) product(m, n, k int, a kernels.Address, transA bool, b kernels.Address, transB bool, c kernels.Address) error {
	return r.o.blas.Gemm(cublas.Product{M: m, N: n, K: k, TransA: transA, TransB: transB, A: driver.Pointer(a), B: driver.Pointer(b), C: driver.Pointer(c),
		Type: cublas.Float32, Compute: r.compute})
}

// dense is device.Linear: y = x·Wᵀ + b, and what follows.
func dense(then kernels.Activation) lowering {
	return func(_ *Device, c *device.Call) (step, error) {
		return func(r *running) error {
			x := r.operands(c)
			m, n, k := x.dims[0], x.dims[1], x.dims[2]
			if err := r.product(m, n, k, x.in[0], false, x.in[1], true, x.out[0]); err != nil {
				return err
			}
			return r.o.launch(kernels.Bias(x.out[0], x.in[2], m, n, then)...)
		}, nil
	}
}

// denseGradX is device.LinearGradX: dx = dy·W, times the derivative of what came before.
func denseGradX(before kernels.Activation) lowering {
	return func(_ *Device, c *device.Call) (step, error) {
		return func(r *running) error {
			x := r.operands(c)
			m, n, k := x.dims[0], x.dims[1], x.dims[2]
			if err := r.product(m, k, n, x.in[0], false, x.in[1], false, x.out[0]); err != nil || before == kernels.Identity {
				return err
			}
			return r.o.launch(kernels.ActivateGrad(x.out[0], x.in[2], x.out[0], m*k, before))
		}, nil
	}
}

// denseGradW is device.LinearGradW: dW = dyᵀ·x, db = column sums of dy; and device.LinearGradWDecay, which adds c·W to dW.
func denseGradW(_ *Device, c *device.Call) (step, error) {
	return func(r *running) error {
		x := r.operands(c)
		m, n, k := x.dims[0], x.dims[1], x.dims[2]
		if err := r.product(n, k, m, x.in[1], true, x.in[0], false, x.out[0]); err != nil {
			return err
		}
		calls := []kernels.Call{kernels.ColumnSums(x.out[1], x.in[1], m, n)}
		if c.Kernel == device.LinearGradWDecay {
			calls = append(calls, kernels.Combine(x.out[0], n*k, kernels.Term{A: 1, V: x.out[0]}, kernels.Term{A: float32(x.attr), V: x.in[2]}))
		}
		return r.o.launch(calls...)
	}, nil
}
