package cuda

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"fspda/cuda/compiler"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// TryConvolution computes a convolution, or one of its gradients, by every implementation that may
// be chosen for it, from inputs that it rounds to the device's precision. It calls then with each
// implementation and its output of out numbers, or the reason why it does not run. It is for tests;
// then must not use the device.
func (d *Device) TryConvolution(c *device.Call, in [][]float32, out int, then func(route string, out []float32,
	err error)) error {
	ex := d.exec
	return ex.DoInOrder(func() error {
		if d.handles.dnn == nil {
			return d.handles.dnnErr
		}
		t, err := d.newTrial(c, in, out)
		if err != nil {
			return err
		}
		defer t.end()
		shape := convShape(&compiler.Task{Call: c})
		how := cudnn.Selection{MaxWorkspace: t.maxWorkspace, Product: d.convProduct(c.Kernel, shape, t.element)}
		return d.handles.dnn.Candidates(shape, convDirections[c.Kernel], dnnTypes[t.element], d.convMath(), how,
			func(conv *cudnn.Conv) error {
				made, err := t.run(conv)
				if _, ok := errors.AsType[*cudnn.Error](err); err != nil && !ok {
					return fmt.Errorf("%s: %w", conv.Route(), err)
				}
				then(conv.Route(), made, err)
				return nil
			})
	})
}

// trialNumbers copies numbers in float32 to the device and from it, for trials in the precision of
// the device.
type trialNumbers struct {
	ex       *executor.Executor
	element  kernels.Element
	float32s driver.Pointer // memory for the longest operand in float32
	staging  *executor.Buffer
}

// convTrial is a convolution with its operands on the device.
type convTrial struct {
	trialNumbers
	a, b, c, w   driver.Pointer // inputs, output and workspace
	out          int            // numbers
	maxWorkspace int            // bytes
	kernel       device.Kernel
	end          func()
}

func (d *Device) newTrial(c *device.Call, in [][]float32, out int) (*convTrial, error) {
	ex, size := d.exec, d.precision.Element().Size()
	t := &convTrial{trialNumbers: trialNumbers{ex: ex, element: d.precision.Element()}, out: out, kernel: c.Kernel}
	numbers := max(len(in[0]), len(in[1]), out)
	t.maxWorkspace = 8*4*numbers + 1<<20 // more than convWorkspace allows a run
	at, end, err := ex.Borrow(size*len(in[0]), size*len(in[1]), size*out, t.maxWorkspace, 4*numbers)
	if err != nil {
		return nil, fmt.Errorf("allocating a convolution: %w", err)
	}
	t.a, t.b, t.c, t.w, t.float32s, t.end = at[0], at[1], at[2], at[3], at[4], end
	if t.staging, err = ex.AllocBuffer(executor.ChunkBytes); err != nil {
		end()
		return nil, err
	}
	t.end = func() { ex.PutBuffer(t.staging); end() }
	if err := errors.Join(t.copyIn(t.a, in[0]), t.copyIn(t.b, in[1])); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// region returns the region of device memory at which numbers belong, with their bytes.
func region(at driver.Pointer, v []float32) kernels.Region {
	return kernels.Region{At: kernels.Address(at), Bytes: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))),
		4*len(v))}
}

// copyIn copies numbers to the device and rounds them.
func (t *trialNumbers) copyIn(to driver.Pointer, v []float32) error {
	if t.element == kernels.F32 {
		return t.ex.CopyIn(region(to, v), t.staging)
	}
	if err := t.ex.CopyIn(region(t.float32s, v), t.staging); err != nil {
		return err
	}
	return t.ex.Launch(kernels.Narrow(t.element, kernels.Address(to), kernels.Address(t.float32s), len(v)))
}

// copyOut copies n numbers from the device.
func (t *trialNumbers) copyOut(from driver.Pointer, n int) ([]float32, error) {
	v := make([]float32, n)
	if t.element != kernels.F32 {
		if err := t.ex.Launch(kernels.Widen(t.element, kernels.Address(t.float32s), kernels.Address(from),
			n)); err != nil {
			return nil, err
		}
		from = t.float32s
	}
	return v, t.ex.CopyOut(region(from, v), t.staging)
}

// run computes the output, which is NaN before.
func (t *convTrial) run(conv *cudnn.Conv) ([]float32, error) {
	none := make([]float32, t.out)
	for i := range none {
		none[i] = float32(math.NaN())
	}
	if err := t.copyIn(t.c, none); err != nil {
		return nil, err
	}
	x, w, y := t.a, t.b, t.c
	switch t.kernel {
	case device.ConvGradX: // dy and w
		x, w, y = t.c, t.b, t.a
	case device.ConvGradW: // x and dy
		x, w, y = t.a, t.c, t.b
	}
	if err := conv.Run(x, w, y, t.w); err != nil {
		return nil, err
	}
	return t.copyOut(t.c, t.out)
}
