package cuda

import (
	"runtime"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

func poolOf(d []int) kernels.Pool {
	return kernels.Pool{Element: kernels.F32, Images: d[0], H: d[1], W: d[2], C: d[3], R: d[4], Stride: d[5], Pad: d[6]}
}

func maxPool(x operands) []kernels.Call {
	return []kernels.Call{poolOf(x.dims).Max(x.out[0], x.out[1], x.in[0])}
}

func maxPoolGrad(x operands) []kernels.Call {
	return []kernels.Call{poolOf(x.dims).MaxGrad(x.out[0], x.in[0], x.in[1])}
}

func avgPool(x operands) []kernels.Call {
	return []kernels.Call{kernels.AvgPool(kernels.F32, x.out[0], x.in[0], x.dims[0], x.dims[1], x.dims[2])}
}

func avgPoolGrad(x operands) []kernels.Call {
	return []kernels.Call{kernels.AvgPoolGrad(kernels.F32, x.out[0], x.in[0], x.dims[0], x.dims[1], x.dims[2])}
}

// mostConvWorkspace is what a convolution may work in, in bytes.
const mostConvWorkspace = 512 << 20

func convShape(d []int) cudnn.Shape {
	return cudnn.Shape{N: d[0], H: d[1], W: d[2], C: d[3], K: d[4], R: d[5], S: d[6], Stride: d[7], Pad: d[8]}
}

var convDirections = map[device.Kernel]cudnn.Direction{device.Conv: cudnn.Forward, device.ConvGradX: cudnn.GradX, device.ConvGradW: cudnn.GradW}

// convolution is device.Conv, ConvGradX or ConvGradW. The algorithm is chosen here.
func convolution(d *Device, c *device.Call) (step, error) {
	o := d.owner
	var conv *cudnn.Conv
	err := o.ask(func() (err error) {
		if o.dnn == nil {
			return o.noDNN
		}
		conv, err = o.dnn.NewConv(convShape(c.Dims), convDirections[c.Kernel], cudnn.Float32, d.convMath(), convScratch(c))
		return err
	})
	if err != nil {
		return nil, err
	}
	runtime.AddCleanup(conv, o.discardConv, *conv)
	return func(r *running) error {
		in, out := r.at(c.In[0]), r.at(c.Out[0])
		other := r.at(c.In[1])
		x, w, y := in, other, out
		switch c.Kernel {
		case device.ConvGradX:
			x, w, y = out, other, in
		case device.ConvGradW:
			x, w, y = in, out, other
		}
		return conv.Run(driver.Pointer(x), driver.Pointer(w), driver.Pointer(y), driver.Pointer(r.scratch))
	}, nil
}

// convScratch is the room that a convolution may work in: as much as its operands take, since an algorithm that wants more is seldom worth it.
func convScratch(c *device.Call) int {
	n := 0
	for _, r := range append(append([]device.Ref{}, c.In...), c.Out...) {
		n += 4 * r.Len
	}
	return min(n+(1<<20), mostConvWorkspace)
}
