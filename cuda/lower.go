package cuda

import (
	"fmt"

	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/signature"
)

// lowering makes the step of a call.
type lowering func(d *Device, c *device.Call) (step, error)

// lowerings has one for every kernel.
var lowerings = map[device.Kernel]lowering{
	device.Linear:              dense(kernels.Identity),
	device.LinearSigmoid:       dense(kernels.SigmoidOf),
	device.LinearReLU:          dense(kernels.ReLUOf),
	device.LinearGradX:         denseGradX(kernels.Identity),
	device.LinearGradXSigmoid:  denseGradX(kernels.SigmoidOf),
	device.LinearGradXReLU:     denseGradX(kernels.ReLUOf),
	device.LinearGradW:         denseGradW,
	device.LinearGradWDecay:    denseGradW,
	device.Sigmoid:             launching(activate(kernels.SigmoidOf)),
	device.ReLU:                launching(activate(kernels.ReLUOf)),
	device.SigmoidGrad:         launching(activateGrad(kernels.SigmoidOf)),
	device.ReLUGrad:            launching(activateGrad(kernels.ReLUOf)),
	device.SoftmaxCrossEntropy: labelled(softmaxCrossEntropy),
	device.Score:               labelled(score),

	device.HalfSquare:  launching(halfSquare),
	device.Scale:       launching(scale),
	device.ScaleBy:     launching(scaleBy),
	device.Add:         launching(add),
	device.AddScaled:   launching(addScaled),
	device.MoveAverage: launching(moveAverage),

	device.Conv:      convolution,
	device.ConvGradX: convolution,
	device.ConvGradW: convolution,

	device.BatchNorm:            launching(batchNorm(kernels.Plain)),
	device.BatchNormReLU:        launching(batchNorm(kernels.ReLU)),
	device.BatchNormAddReLU:     launching(batchNorm(kernels.AddReLU)),
	device.BatchNormGrad:        launching(batchNormGrad(kernels.Plain)),
	device.BatchNormReLUGrad:    launching(batchNormGrad(kernels.ReLU)),
	device.BatchNormAddReLUGrad: launching(batchNormGrad(kernels.AddReLU)),
	device.Normalize:            launching(normalize(kernels.Plain)),
	device.NormalizeReLU:        launching(normalize(kernels.ReLU)),
	device.NormalizeAddReLU:     launching(normalize(kernels.AddReLU)),

	device.MaxPool:     launching(maxPool),
	device.MaxPoolGrad: launching(maxPoolGrad),
	device.AvgPool:     launching(avgPool),
	device.AvgPoolGrad: launching(avgPoolGrad),
}

// lower makes the steps of code.
func lower(d *Device, code *device.Code) ([]step, error) {
	steps := make([]step, len(code.Calls))
	for i := range code.Calls {
		c := &code.Calls[i]
		make, ok := lowerings[c.Kernel]
		if !ok {
			return nil, fmt.Errorf("call %d, %s: the GPU has no such kernel", i, signature.Title(c))
		}
		var err error
		if steps[i], err = make(d, c); err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, signature.Title(c), err)
		}
	}
	return steps, nil
}

// operands is where those of a call lie in a run.
type operands struct {
	*running
	in, out []kernels.Address
	dims    []int
	attr    float64
}

func (r *running) operands(c *device.Call) operands {
	at := func(refs []device.Ref) []kernels.Address {
		all := make([]kernels.Address, len(refs))
		for i, ref := range refs {
			all[i] = r.at(ref)
		}
		return all
	}
	return operands{r, at(c.In), at(c.Out), c.Dims, c.Attr}
}

// launching is a call that is kernels and nothing else.
func launching(calls func(x operands) []kernels.Call) lowering {
	return func(_ *Device, c *device.Call) (step, error) {
		return func(r *running) error { return r.o.launch(calls(r.operands(c))...) }, nil
	}
}

// labelled is launching for kernels that read labels. Those of a batch have been looked at on the host before.
func labelled(calls func(x operands) []kernels.Call) lowering {
	make := launching(calls)
	return func(d *Device, c *device.Call) (step, error) {
		if c.In[1].Space != device.Labels {
			return nil, fmt.Errorf("input 1 is at %s, want the labels of the batch", c.In[1])
		}
		return make(d, c)
	}
}

// scratchOf is the room that the kernels of a call need beside their operands, in bytes.
func scratchOf(c *device.Call) int {
	switch d := c.Dims; c.Kernel {
	case device.SoftmaxCrossEntropy, device.Score:
		return 8 * (d[0] + 1)
	case device.HalfSquare:
		return 8 * kernels.DotParts(d[0])
	case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU, device.BatchNormGrad, device.BatchNormReLUGrad,
		device.BatchNormAddReLUGrad, device.Normalize, device.NormalizeReLU, device.NormalizeAddReLU:
		n := normOf(d, c.Attr, kernels.Plain)
		return normFactors*alignedTo(4*d[1]) + 8*n.PartNumbers()
	case device.Conv, device.ConvGradX, device.ConvGradW:
		return convScratch(c)
	}
	return 0
}
