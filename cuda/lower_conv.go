package cuda

import (
	"errors"
	"fmt"
	"runtime"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

func poolOf(x boundTask) kernels.Pool {
	d := x.dims
	return kernels.Pool{Element: x.Element(), Images: d[0], H: d[1], W: d[2], C: d[3], R: d[4], Stride: d[5], Pad: d[6]}
}

// maxPool is device.MaxPool, also of a normalisation that is not stored.
func maxPool(x boundTask) kernels.Call {
	if k := x.PairSaved; k != nil {
		return poolOf(x).MaxOfNorm(x.out[0], x.out[1], x.in[0], x.address(*x.PairMean), x.address(k.Operands[0]),
			x.address(k.Operands[1]))
	}
	return poolOf(x).Max(x.out[0], x.out[1], x.in[0])
}

// maxConvWorkspace is the largest workspace of a convolution, in bytes.
const maxConvWorkspace = 512 << 20

// convShape returns the convolution of a task, with padded channels.
func convShape(t *compiler.Task) cudnn.Shape {
	d := t.Call.Dims
	return cudnn.Shape{N: d[0], H: d[1], W: d[2], C: max(d[3], t.Padded), K: d[4], R: d[5], S: d[6], Stride: d[7],
		Pad: d[8]}
}

var convDirections = map[device.Kernel]cudnn.Direction{device.Conv: cudnn.Forward, device.ConvGradX: cudnn.GradX,
	device.ConvGradW: cudnn.GradW}

// dnnTypes maps number types to cuDNN's types.
var dnnTypes = map[kernels.Element]cudnn.Type{kernels.F32: cudnn.Float32, kernels.F16: cudnn.Float16,
	kernels.BF16: cudnn.BFloat16}

// convolution is the lowering of device.Conv, ConvGradX and ConvGradW. It chooses the
// implementation.
func convolution(l *lowerer, t *compiler.Task) (step, error) {
	ex := l.exec
	var conv, kept *cudnn.Conv
	err := ex.Do(func() (err error) {
		if l.handles.dnn == nil {
			return l.handles.dnnErr
		}
		if conv, err = l.handles.dnn.NewConv(convShape(t), convDirections[t.Call.Kernel], dnnTypes[t.In[0].Element],
			l.convMath(), l.selection(t)); err == nil {
			kept = new(*conv)
			ex.Track(kept)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	l.routes = append(l.routes, convRoute{task: t, conv: conv})
	runtime.AddCleanup(conv, ex.DiscardCloser, executor.Closer(kept))
	if halfGradWBytes(t) > 0 {
		return halfGradW(conv, t), nil
	}
	return func(env *launchEnv) error {
		a, b, c, workspace := driver.Pointer(env.address(t.In[0])), driver.Pointer(env.address(t.In[1])),
			driver.Pointer(env.address(t.Out[0])), driver.Pointer(env.scratch)
		switch t.Call.Kernel {
		case device.ConvGradX:
			return conv.Run(c, b, a, workspace)
		case device.ConvGradW:
			return conv.Run(a, c, b, workspace)
		}
		return conv.Run(a, b, c, workspace)
	}, nil
}

// selection is how the implementation of a convolution is chosen.
func (d *Device) selection(t *compiler.Task) cudnn.Selection {
	ex := d.exec
	return cudnn.Selection{MaxWorkspace: convWorkspace(t), Alignment: alignments(t),
		Deterministic: d.deterministic, Cache: d.handles.choices, Alloc: ex.Borrow, Measure: d.measureConv,
		Product: d.convProduct(t.Call.Kernel, convShape(t), t.In[0].Element)}
}

// measureConv times a candidate. One that cannot be captured in a graph is refused.
func (d *Device) measureConv(n, turns int, send func() error) (ms float64, err error) {
	if ms, err = d.exec.TimeWork(n, turns, send); errors.Is(err, executor.ErrNotCapturable) {
		err = fmt.Errorf("%w: %w", cudnn.ErrRefused, err)
	}
	return ms, err
}

// convProduct returns a 1×1 convolution as a matrix product, whose rows are pixels or filters; nil
// for other shapes.
func (d *Device) convProduct(k device.Kernel, s cudnn.Shape, e kernels.Element) func(x, w, y driver.Pointer) error {
	if s.R != 1 || s.S != 1 || s.Stride != 1 || s.Pad != 0 {
		return nil
	}
	blas, rows := d.handles.blas, s.N*s.H*s.W
	p := cublas.Product{Type: blasTypes[e], TypeC: blasTypes[e], Compute: d.compute()}
	return func(x, w, y driver.Pointer) error {
		p := p
		switch k {
		case device.Conv: // y = x·wᵀ
			p.M, p.N, p.K, p.TransB, p.A, p.B, p.C = rows, s.K, s.C, true, x, w, y
		case device.ConvGradX: // dx = dy·w
			p.M, p.N, p.K, p.A, p.B, p.C = rows, s.C, s.K, y, w, x
		case device.ConvGradW: // dw = dyᵀ·x
			p.M, p.N, p.K, p.TransA, p.A, p.B, p.C = s.K, s.C, rows, true, y, x, w
		}
		if err := blas.Gemm(p); err != nil {
			return fmt.Errorf("%w: %w", cudnn.ErrRefused, err)
		}
		return nil
	}
}

// maxAlignment is the alignment of operands that the fastest convolutions need, in bytes.
const maxAlignment = 16

// alignments returns the alignment of x, w and y of a convolution in bytes, at most maxAlignment.
// Vectors and the arena have a larger one.
func alignments(t *compiler.Task) (all [3]int) {
	of := func(o compiler.Operand) int { bits := o.Offset | maxAlignment; return bits & -bits }
	a, b, c := of(t.In[0]), of(t.In[1]), of(t.Out[0])
	if halfGradWBytes(t) > 0 {
		c = maxAlignment // cuDNN writes dW to the scratch
	}
	switch t.Call.Kernel {
	case device.ConvGradX:
		return [3]int{c, b, a}
	case device.ConvGradW:
		return [3]int{a, c, b}
	}
	return [3]int{a, b, c}
}

// halfGradW is device.ConvGradW of 16 bits: cuDNN writes dW in 16 bits and with padded channels to
// the scratch, from which it is cast to float32.
func halfGradW(conv *cudnn.Conv, t *compiler.Task) step {
	e, c := t.In[0].Element, t.Call.Dims[3]
	return func(env *launchEnv) error {
		x := env.bind(t)
		rows := t.Out[0].Len / c
		work := x.scratch + kernels.Address(halfGradWBytes(t))
		if err := conv.Run(driver.Pointer(x.in[0]), driver.Pointer(x.scratch), driver.Pointer(x.in[1]),
			driver.Pointer(work)); err != nil {
			return err
		}
		return env.ex.Launch(widenGradW(e, x.out[0], x.scratch, rows, c, max(c, t.Padded)))
	}
}

// widenGradW casts rows of 16 bits to float32, without padding.
func widenGradW(e kernels.Element, dst, src kernels.Address, rows, c, padded int) kernels.Call {
	if padded == c {
		return kernels.Widen(e, dst, src, rows*c)
	}
	return kernels.Crop(e, dst, src, rows, c, padded)
}

// halfGradWBytes returns the bytes of dW in 16 bits, in the scratch; 0 where it is not needed.
func halfGradWBytes(t *compiler.Task) int {
	if t.Call.Kernel != device.ConvGradW || t.In[0].Element == kernels.F32 || t.Out[0].Element != kernels.F32 {
		return 0
	}
	c := t.Call.Dims[3]
	return compiler.Align(t.Out[0].Len / c * max(c, t.Padded) * t.In[0].Element.Size())
}

// convScratch returns the scratch of a convolution.
func convScratch(t *compiler.Task) int {
	return halfGradWBytes(t) + convWorkspace(t)
}

// convWorkspace returns the largest workspace of a convolution: as large as its operands, since
// implementations that need more are seldom worth it.
func convWorkspace(t *compiler.Task) int {
	n := 0
	for _, o := range append(append([]compiler.Operand{}, t.In...), t.Out...) {
		n += o.Bytes()
	}
	return min(n+(1<<20), maxConvWorkspace)
}
