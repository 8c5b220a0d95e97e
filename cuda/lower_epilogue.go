package cuda

import (
	"runtime"

	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// epilogues tells whether cuBLASLt adds biases and sums up their gradients. Not in fp32, which keeps the sums of float64 that the contract of a device
// holds it to.
func (d *Device) epilogues() bool { return d.precision != FP32 && d.owner != nil && d.owner.lt != nil }

// matmul is the product of m×n of a task, of its inputs a and b, with what follows it; bias is what that reads or writes. Nil says that the library has
// no algorithm for it, and that other kernels do it.
func (d *Device) matmul(t *task, m, n, k, a int, transA bool, b int, transB bool, e cublas.Epilogue, bias operand) *cublas.Matmul {
	if !d.epilogues() || bias.element != t.element() {
		return nil
	}
	at := func(o operand) driver.Pointer { return driver.Pointer(line + o.at) } // as aligned as it will be
	p := cublas.Product{M: m, N: n, K: k, TransA: transA, TransB: transB, A: at(t.in[a]), B: at(t.in[b]), C: at(t.out[0]),
		Type: blasTypes[t.in[a].element], TypeC: blasTypes[t.element()], Compute: d.compute()}
	var made *cublas.Matmul
	err := d.owner.ask(func() (err error) {
		made, err = d.owner.lt.NewMatmul(p, e, at(bias))
		return err
	})
	if err != nil { // whatever the library has against it, there is another way
		return nil
	}
	runtime.AddCleanup(made, d.owner.discardMatmul, *made)
	return made
}

// biasEpilogue is what cuBLASLt does of a dense layer, and what of its activation is left.
func biasEpilogue(then kernels.Activation) (e cublas.Epilogue, left kernels.Activation) {
	if then == kernels.ReLUOf {
		return cublas.WithBiasReLU, kernels.Identity
	}
	return cublas.WithBias, then
}

// bias is that of a dense layer in float32, wherever the task reads it from.
func (x operands) bias() kernels.Address {
	if x.task.in[2].element == kernels.F32 {
		return x.in[2]
	}
	r := x.call.In[2]
	return x.spaces[r.Space] + 4*kernels.Address(r.Off)
}

// denseBy is a dense layer by cuBLASLt.
func denseBy(by *cublas.Matmul, t *task, left kernels.Activation) step {
	return func(r *running) error {
		x := r.operands(t)
		if err := by.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]), driver.Pointer(x.in[2])); err != nil || left == kernels.Identity {
			return err
		}
		n := x.dims[0] * x.dims[1]
		if e := x.element(); e != kernels.F32 {
			return r.o.launch(kernels.ActivateShort(e, x.out[0], x.out[0], n, left))
		}
		return r.o.launch(kernels.Activate(x.out[0], x.out[0], n, left))
	}
}

// denseGradWBy is device.LinearGradW, or LinearGradWDecay, by cuBLASLt.
func denseGradWBy(by *cublas.Matmul, t *task) step {
	return func(r *running) error {
		x := r.operands(t)
		if err := by.Run(driver.Pointer(x.in[1]), driver.Pointer(x.in[0]), driver.Pointer(x.out[0]), driver.Pointer(x.out[1])); err != nil || t.call.Kernel != device.LinearGradWDecay {
			return err
		}
		return r.o.launch(x.decay(x.dims[1] * x.dims[2]))
	}
}
