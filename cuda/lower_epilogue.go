package cuda

import (
	"runtime"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// epilogues tells whether cuBLASLt adds biases and sums up their gradients. Not in fp32, which
// keeps the sums of float64 that the contract of a device holds it to.
func (d *Device) epilogues() bool { return d.precision != FP32 && d.handles.lt != nil }

// factor is an input of a task, and whether a product takes it turned.
type productInput struct {
	in         int
	transposed bool
}

// fused is a product of m×n of a task, with what follows it.
type productSpec struct {
	m, n, k  int
	a, b     productInput
	epilogue cublas.Epilogue
	bias     *compiler.Operand // what that reads or writes beside the matrices; nil: nothing
	mask     *compiler.Operand
}

// matmul makes it. Nil says that the library has no algorithm for it, and that other kernels do it.
func (d *Device) matmul(t *compiler.Task, f productSpec) *cublas.Matmul {
	if !d.epilogues() || f.bias != nil && f.bias.Element != t.Element() {
		return nil
	}
	at := func(o *compiler.Operand) driver.Pointer { // as aligned as it will be
		if o == nil {
			return 0
		}
		return driver.Pointer(compiler.AlignBytes + o.Offset)
	}
	p := cublas.Product{M: f.m, N: f.n, K: f.k, TransA: f.a.transposed, TransB: f.b.transposed, A: at(&t.In[f.a.in]),
		B: at(&t.In[f.b.in]), C: at(&t.Out[0]),
		Type: blasTypes[t.In[f.a.in].Element], TypeC: blasTypes[t.Element()], Compute: d.compute()}
	var made, kept *cublas.Matmul
	err := d.exec.Do(func() (err error) {
		if made, err = d.handles.lt.NewMatmul(p, f.epilogue, cublas.Operands{Bias: at(f.bias),
			Mask: at(f.mask)}); err == nil {
			kept = new(*made)
			d.exec.Track(kept)
		}
		return err
	})
	if err != nil { // whatever the library has against it, there is another way
		return nil
	}
	runtime.AddCleanup(made, d.exec.DiscardCloser, executor.Closer(kept))
	return made
}

// bias is that of a dense layer in float32, wherever the task reads it from.
func (x boundTask) bias() kernels.Address {
	if x.Task.In[2].Element == kernels.F32 {
		return x.in[2]
	}
	r := x.Call.In[2]
	return x.spaces[r.Space] + 4*kernels.Address(r.Off)
}

// denseBy is a dense layer by cuBLASLt, but for what is left of its activation.
func ltDense(by *cublas.Matmul, t *compiler.Task, left kernels.Activation) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		if err := by.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]),
			env.epilogueOperands(t)); err != nil || left == kernels.Identity {
			return err
		}
		n := x.dims[0] * x.dims[1]
		if e := x.Element(); e != kernels.F32 {
			return env.ex.Launch(kernels.ActivateHalf(e, x.out[0], x.out[0], n, left))
		}
		return env.ex.Launch(kernels.Activate(x.out[0], x.out[0], n, left))
	}
}

// beside is where the bias of a dense layer lies, and the mask that goes with it or its gradient.
func (env *launchEnv) epilogueOperands(t *compiler.Task) (b cublas.Operands) {
	if t.Mask != nil {
		b.Mask = driver.Pointer(env.address(t.Mask.Operand))
	}
	if t.Call.Kernel != device.LinearGradXReLU {
		b.Bias = driver.Pointer(env.address(t.In[2]))
	}
	return b
}

// denseGradWBy is device.LinearGradW, or LinearGradWDecay, by cuBLASLt.
func ltGradW(by *cublas.Matmul, t *compiler.Task) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		if err := by.Run(driver.Pointer(x.in[1]), driver.Pointer(x.in[0]), driver.Pointer(x.out[0]),
			cublas.Operands{Bias: driver.Pointer(x.out[1])}); err != nil || t.Call.Kernel != device.LinearGradWDecay {
			return err
		}
		return env.ex.Launch(x.decay(x.dims[1] * x.dims[2]))
	}
}
