package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
)

// denseReLU is a dense layer f with ReLU: by cuBLASLt alone where that keeps NaN, else by cuBLASLt
// and a kernel. Either writes a mask where the gradient can use one. It is nil where cuBLASLt has
// no algorithm.
func (l *lowerer) denseReLU(t *compiler.Task, f productSpec) step {
	var gradient *cublas.Matmul
	if t.Mask != nil {
		gradient = l.maskedGradX(t.Mask.Gradient)
	}
	if gradient != nil {
		f.epilogue, f.aux = cublas.EpilogueReLUMaskBias, &t.Mask.Operand
		if by := l.nanSafeMatmul(t, f); by != nil {
			l.masked[t.Mask] = gradient
			return ltDense(by, t, kernels.Identity)
		}
	}
	f.epilogue, f.aux = cublas.EpilogueReLUBias, nil
	if by := l.nanSafeMatmul(t, f); by != nil {
		return ltDense(by, t, kernels.Identity)
	}
	f.epilogue = cublas.EpilogueBias
	by := l.matmul(t, f)
	switch {
	case by == nil:
		return nil
	case gradient != nil && l.knowsMaskBits(gradient, t.Mask.Gradient):
		l.masked[t.Mask] = gradient
		return ltDenseMaskKernel(by, t)
	}
	return ltDense(by, t, kernels.ReLUOf)
}

// ltDenseMaskKernel is a dense layer by cuBLASLt, followed by a kernel for ReLU and the mask.
func ltDenseMaskKernel(product *cublas.Matmul, t *compiler.Task) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		if err := product.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]),
			env.epilogueOperands(t)); err != nil {
			return err
		}
		rows, n := x.dims[0], x.dims[1]
		return env.ex.Launch(kernels.ReLUBits(x.Element(), x.out[0], env.address(t.Mask.Operand), rows, n,
			cublas.MaskBytes(1, n)))
	}
}

// maskedGradX is device.LinearGradXReLU by cuBLASLt.
func (d *Device) maskedGradX(t *compiler.Task) *cublas.Matmul {
	n := t.Call.Dims
	return d.matmul(t, productSpec{m: n[0], n: n[2], k: n[1], a: productInput{in: 0}, b: productInput{in: 1},
		epilogue: cublas.EpilogueReLUGrad, aux: &t.Mask.Operand})
}

// ltGradX is the step of maskedGradX.
func ltGradX(product *cublas.Matmul, t *compiler.Task) step {
	return func(env *launchEnv) error {
		x := env.bind(t)
		return product.Run(driver.Pointer(x.in[0]), driver.Pointer(x.in[1]), driver.Pointer(x.out[0]),
			env.epilogueOperands(t))
	}
}

// nanSafeMatmul returns a product with ReLU whose algorithm keeps NaN, or nil. Some algorithms make
// 0 of NaN, which would hide that a network has diverged.
func (d *Device) nanSafeMatmul(t *compiler.Task, f productSpec) *cublas.Matmul {
	product := d.matmul(t, f)
	if product == nil {
		return nil
	}
	kept, err := executor.Ask(d.exec, func() (bool, error) { return productKeepsNaN(d.exec, product, t, f) })
	if err != nil || !kept { // also without memory to try it
		return nil
	}
	return product
}

// productKeepsNaN tries a product of zeros with a bias of NaN.
func productKeepsNaN(ex *executor.Executor, product *cublas.Matmul, t *compiler.Task, f productSpec) (bool, error) {
	c := &t.Out[0]
	sizes := []int{t.In[f.a.in].Bytes(), t.In[f.b.in].Bytes(), c.Bytes(), f.bias.Bytes(), cublas.MaskBytes(f.m, f.n)}
	at, end, err := ex.Borrow(sizes...)
	if err != nil {
		return false, err
	}
	defer end()
	for i, fill := range []uint8{0, 0, 0, 0xff, 0} {
		if err := ex.SetBytes(at[i], fill, sizes[i]); err != nil {
			return false, err
		}
	}
	if err := product.Run(at[0], at[1], at[2], cublas.Operands{Bias: at[3], Aux: at[4]}); err != nil {
		return false, err
	}
	first, err := ex.ReadBack(at[2], c.Element.Size())
	if err != nil {
		return false, err
	}
	return isNaN(c.Element, first), nil
}

// probeBits is the bytes of the first two rows of a mask in a trial: bits 0 and 2 set, and bits 4
// and 6.
var probeBits = [2]uint8{0x05, 0x50}

// knowsMaskBits reports whether a gradient by mask reads the bits in the order in which kernels
// write them. NVIDIA does not document the order.
func (d *Device) knowsMaskBits(gradient *cublas.Matmul, t *compiler.Task) bool {
	known, err := executor.Ask(d.exec, func() (bool, error) { return maskBitsKnown(d.exec, gradient, t) })
	return err == nil && known
}

// maskBitsKnown tries a gradient whose factors are all the same positive number, with a known mask.
func maskBitsKnown(ex *executor.Executor, gradient *cublas.Matmul, t *compiler.Task) (bool, error) {
	const positive = 0x3c // 0x3c3c is one in float16 and bfloat16, and 0x3c3c3c3c in float32
	m, k := t.Call.Dims[0], t.Call.Dims[2]
	row := cublas.MaskBytes(1, k)
	sizes := []int{t.In[0].Bytes(), t.In[1].Bytes(), t.Out[0].Bytes(), row * m}
	at, end, err := ex.Borrow(sizes...)
	if err != nil {
		return false, err
	}
	defer end()
	err = errors.Join(ex.SetBytes(at[0], positive, sizes[0]), ex.SetBytes(at[1], positive, sizes[1]),
		ex.SetBytes(at[3], probeBits[0], sizes[3]))
	if m > 1 {
		err = errors.Join(err, ex.SetBytes(at[3]+driver.Pointer(row), probeBits[1], row))
	}
	if err == nil {
		err = gradient.Run(at[0], at[1], at[2], cublas.Operands{Aux: at[3]})
	}
	if err != nil {
		return false, err
	}
	for i := range min(m, 2) {
		n, size := min(k, 64), t.Element().Size()
		b, err := ex.ReadBack(at[2]+driver.Pointer(i*k*size), n*size)
		if err != nil {
			return false, err
		}
		for j := range n {
			if passed := slices.Max(b[j*size:(j+1)*size]) > 0; passed != (probeBits[i]>>(j%8)&1 == 1) {
				return false, nil
			}
		}
	}
	return true, nil
}

// isNaN reports whether the first number of b is NaN.
func isNaN(e kernels.Element, b []byte) bool {
	short := binary.LittleEndian.Uint16(b) & 0x7fff
	switch e {
	case kernels.F16:
		return short > 0x7c00
	case kernels.BF16:
		return short > 0x7f80
	}
	v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	return v != v
}
