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

// epilogues reports whether cuBLASLt adds biases and sums their gradients. It does not in fp32,
// where sums have float64 by the contract of device.Device.
func (d *Device) epilogues() bool { return d.precision != FP32 && d.handles.lt != nil }

// productInput is an input of a product, and whether it is transposed.
type productInput struct {
	in         int
	transposed bool
}

// productSpec is a matrix product of m×n of a task, with its epilogue.
type productSpec struct {
	m, n, k  int
	a, b     productInput
	epilogue cublas.Epilogue
	bias     *compiler.Operand // operands of the epilogue, which may be nil
	aux      *compiler.Operand
	out      int // the number of the output that is the product
}

// biasAlignment is the alignment in bytes that the offset of a bias needs for cuBLASLt to read or
// write it. Its documentation promises algorithms for any alignment. But some load 16 bytes of a
// bias at once, and fault (PyTorch, pull request 194497). The weights before a bias may end at any
// offset.
const biasAlignment = 16

// matmul returns the product, or nil where cuBLASLt has no algorithm for it: then other kernels
// compute it.
func (d *Device) matmul(t *compiler.Task, f productSpec) *cublas.Matmul {
	if b := f.bias; !d.epilogues() || b != nil && (b.Element != t.Element() || b.Offset%biasAlignment != 0) {
		return nil
	}
	at := func(o *compiler.Operand) driver.Pointer { // an address with the alignment that the operand has in a run
		if o == nil {
			return 0
		}
		return driver.Pointer(compiler.AlignBytes + o.Offset)
	}
	p := cublas.Product{M: f.m, N: f.n, K: f.k, TransA: f.a.transposed, TransB: f.b.transposed, A: at(&t.In[f.a.in]),
		B: at(&t.In[f.b.in]), C: at(&t.Out[f.out]),
		Type: blasTypes[t.In[f.a.in].Element], TypeC: blasTypes[t.Element()], Compute: d.compute()}
	var product, kept *cublas.Matmul
	err := d.exec.Do(func() (err error) {
		if product, err = d.handles.lt.NewMatmul(p, f.epilogue, cublas.Operands{Bias: at(f.bias),
			Aux: at(f.aux)}); err == nil {
			kept = new(*product)
			d.exec.Track(kept)
		}
		return err
	})
	if err != nil { // other kernels compute it
		return nil
	}
	runtime.AddCleanup(product, d.exec.DiscardCloser, executor.Closer(kept))
	return product
}

// bias returns the bias of a dense layer in float32, which the task may read in another format.
func (x boundTask) bias() kernels.Address {
	if x.Task.In[2].Element == kernels.F32 {
		return x.in[2]
	}
	r := x.Call.In[2]
	return x.spaces[r.Space] + 4*kernels.Address(r.Off)
}

// ltDense is a dense layer by cuBLASLt, followed by a kernel for the activation.
func ltDense(product *cublas.Matmul, t *compiler.Task, activation kernels.Activation) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		if err := product.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]),
			env.epilogueOperands(t)); err != nil || activation == kernels.Identity {
			return err
		}
		n := x.dims[0] * x.dims[1]
		return env.ex.Launch(kernels.Activate(x.Element(), x.out[0], x.out[0], n, activation))
	}
}

// epilogueOperands returns the addresses of a dense layer's bias and mask.
func (env *launchEnv) epilogueOperands(t *compiler.Task) (b cublas.Operands) {
	if t.Mask != nil {
		b.Aux = driver.Pointer(env.address(t.Mask.Operand))
	}
	if t.Call.Kernel != device.LinearGradXReLU {
		b.Bias = driver.Pointer(env.address(t.In[2]))
	}
	return b
}

// ltGradW is device.LinearGradW, or LinearGradWDecay, by cuBLASLt.
func ltGradW(product *cublas.Matmul, t *compiler.Task) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		if err := product.Run(driver.Pointer(x.in[1]), driver.Pointer(x.in[0]), driver.Pointer(x.out[0]),
			cublas.Operands{Bias: driver.Pointer(x.out[1])}); err != nil || t.Call.Kernel != device.LinearGradWDecay {
			return err
		}
		return env.ex.Launch(x.decay(x.dims[1] * x.dims[2]))
	}
}
