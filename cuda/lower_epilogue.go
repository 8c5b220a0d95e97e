package cuda

import (
	"runtime"

	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// epilogues tells whether cuBLASLt adds biases and sums up their gradients. Not in fp32, which
// keeps the sums of float64 that the contract of a device holds it to.
func (d *Device) epilogues() bool { return d.precision != FP32 && d.owner != nil && d.owner.lt != nil }

// factor is an input of a task, and whether a product takes it turned.
type factor struct {
	in    int
	trans bool
}

// fused is a product of m×n of a task, with what follows it.
type fused struct {
	m, n, k  int
	a, b     factor
	epilogue cublas.Epilogue
	bias     *operand // what that reads or writes beside the matrices; nil: nothing
	mask     *operand
}

// matmul makes it. Nil says that the library has no algorithm for it, and that other kernels do it.
func (d *Device) matmul(t *task, f fused) *cublas.Matmul {
	if !d.epilogues() || f.bias != nil && f.bias.element != t.element() {
		return nil
	}
	at := func(o *operand) driver.Pointer { // as aligned as it will be
		if o == nil {
			return 0
		}
		return driver.Pointer(line + o.at)
	}
	p := cublas.Product{M: f.m, N: f.n, K: f.k, TransA: f.a.trans, TransB: f.b.trans, A: at(&t.in[f.a.in]),
		B: at(&t.in[f.b.in]), C: at(&t.out[0]),
		Type: blasTypes[t.in[f.a.in].element], TypeC: blasTypes[t.element()], Compute: d.compute()}
	var made, kept *cublas.Matmul
	err := d.owner.ask(func() (err error) {
		if made, err = d.owner.lt.NewMatmul(p, f.epilogue, cublas.Beside{Bias: at(f.bias),
			Mask: at(f.mask)}); err == nil {
			kept = new(*made)
			d.owner.keep(kept)
		}
		return err
	})
	if err != nil { // whatever the library has against it, there is another way
		return nil
	}
	runtime.AddCleanup(made, d.owner.discardDescribed, described(kept))
	return made
}

// bias is that of a dense layer in float32, wherever the task reads it from.
func (x operands) bias() kernels.Address {
	if x.task.in[2].element == kernels.F32 {
		return x.in[2]
	}
	r := x.call.In[2]
	return x.spaces[r.Space] + 4*kernels.Address(r.Off)
}

// denseBy is a dense layer by cuBLASLt, but for what is left of its activation.
func denseBy(by *cublas.Matmul, t *task, left kernels.Activation) step {
	return func(r *running) error {
		x := r.operands(t)
		if err := by.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]),
			r.beside(t)); err != nil || left == kernels.Identity {
			return err
		}
		n := x.dims[0] * x.dims[1]
		if e := x.element(); e != kernels.F32 {
			return r.o.launch(kernels.ActivateShort(e, x.out[0], x.out[0], n, left))
		}
		return r.o.launch(kernels.Activate(x.out[0], x.out[0], n, left))
	}
}

// beside is where the bias of a dense layer lies, and the mask that goes with it or its gradient.
func (r *running) beside(t *task) (b cublas.Beside) {
	if t.mask != nil {
		b.Mask = driver.Pointer(r.at(t.mask.operand))
	}
	if t.call.Kernel != device.LinearGradXReLU {
		b.Bias = driver.Pointer(r.at(t.in[2]))
	}
	return b
}

// denseGradWBy is device.LinearGradW, or LinearGradWDecay, by cuBLASLt.
func denseGradWBy(by *cublas.Matmul, t *task) step {
	return func(r *running) error {
		x := r.operands(t)
		if err := by.Run(driver.Pointer(x.in[1]), driver.Pointer(x.in[0]), driver.Pointer(x.out[0]),
			cublas.Beside{Bias: driver.Pointer(x.out[1])}); err != nil || t.call.Kernel != device.LinearGradWDecay {
			return err
		}
		return r.o.launch(x.decay(x.dims[1] * x.dims[2]))
	}
}
