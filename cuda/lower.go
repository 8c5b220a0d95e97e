package cuda

import (
	"fmt"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/signature"
)

// lowering makes the step of a task.
type lowering func(l *lowerer, t *compiler.Task) (step, error)

// lowerer makes the steps of one plan, in the order of its tasks.
type lowerer struct {
	*Device
	// the gradient by each mask that a forward pass writes
	masked map[*compiler.ReLUMask]*cublas.Matmul
	gelus  map[geluShape]bool // whether cuBLASLt computes GELU after such a product
	routes []convRoute
	layout layout
}

// convRoute is a convolution and its implementation.
type convRoute struct {
	task *compiler.Task
	conv *cudnn.Conv
}

// lowerings lists all kernels.
var lowerings = map[device.Kernel]lowering{
	device.Linear:                   dense(kernels.Identity),
	device.LinearSigmoid:            dense(kernels.SigmoidOf),
	device.LinearReLU:               dense(kernels.ReLUOf),
	device.LinearGradX:              denseGradX(kernels.Identity),
	device.LinearGradXSigmoid:       denseGradX(kernels.SigmoidOf),
	device.LinearGradXReLU:          denseGradX(kernels.ReLUOf),
	device.LinearGradW:              denseGradW,
	device.LinearGradWDecay:         denseGradW,
	device.Sigmoid:                  activate(kernels.SigmoidOf),
	device.ReLU:                     activate(kernels.ReLUOf),
	device.SigmoidGrad:              activateGrad(kernels.SigmoidOf),
	device.ReLUGrad:                 activateGrad(kernels.ReLUOf),
	device.SoftmaxCrossEntropy:      crossEntropy,
	device.SoftmaxCrossEntropyMixed: labelLowering(softmaxCrossEntropyMixed),
	device.Score:                    labelLowering(score),

	device.HalfSquare: kernelLowering(halfSquare),
	device.Scale:      oneKernel(scale),
	device.ScaleBy: oneKernel(func(x boundTask) kernels.Call {
		return kernels.ScaleBy(x.out[0], x.in[0], x.in[1], float32(x.attr), x.dims[0])
	}),
	device.Add:       oneKernel(sum),
	device.AddScaled: oneKernel(sum),
	device.Dropout: oneKernel(func(x boundTask) kernels.Call {
		return kernels.Dropout(x.Element(), x.out[0], x.in[0], x.in[1], x.dims[0], x.dims[1], x.attr)
	}),
	device.MoveAverage: oneKernel(func(x boundTask) kernels.Call {
		return kernels.MoveAverage(x.out[0], x.in[0], x.in[1], x.in[2], x.attr, x.dims[0])
	}),

	device.Conv:      convolution,
	device.ConvGradX: convolution,
	device.ConvGradW: convolution,

	device.AddBias:     oneKernel(addBias(kernels.Identity)),
	device.AddBiasReLU: oneKernel(addBias(kernels.ReLUOf)),
	device.AddBiasGrad: oneKernel(func(x boundTask) kernels.Call {
		return kernels.ColumnSums(x.In[0].Element, x.out[0], x.in[0], x.dims[0], x.dims[1])
	}),
	device.AddBiasReLUGrad: kernelLowering(func(x boundTask) []kernels.Call {
		m, c := x.dims[0], x.dims[1]
		return []kernels.Call{kernels.ActivateGrad(x.Element(), x.out[0], x.in[0], x.in[1], m*c, kernels.ReLUOf),
			kernels.ColumnSums(x.Element(), x.out[1], x.out[0], m, c)}
	}),

	device.GroupNorm:            kernelLowering(groupNorm(kernels.Plain)),
	device.GroupNormReLU:        kernelLowering(groupNorm(kernels.ReLU)),
	device.GroupNormAddReLU:     kernelLowering(groupNorm(kernels.AddReLU)),
	device.GroupNormGrad:        kernelLowering(groupNormGrad(kernels.Plain)),
	device.GroupNormReLUGrad:    kernelLowering(groupNormGrad(kernels.ReLU)),
	device.GroupNormAddReLUGrad: kernelLowering(groupNormGrad(kernels.AddReLU)),
	device.EvoNorm:              kernelLowering(evoNorm),
	device.EvoNormGrad:          kernelLowering(evoNormGrad),

	device.MaxPool: oneKernel(maxPool),
	device.MaxPoolGrad: oneKernel(func(x boundTask) kernels.Call {
		return poolOf(x).MaxGrad(x.out[0], x.in[0], x.in[1])
	}),
	device.AvgPool: oneKernel(func(x boundTask) kernels.Call {
		return kernels.AvgPool(x.Element(), x.out[0], x.in[0], x.dims[0], x.dims[1], x.dims[2])
	}),
	device.AvgPoolGrad: oneKernel(func(x boundTask) kernels.Call {
		return kernels.AvgPoolGrad(x.Element(), x.out[0], x.in[0], x.dims[0], x.dims[1], x.dims[2])
	}),

	device.Embed:             oneKernel(embed),
	device.TokenEmbed:        oneKernel(embed),
	device.EmbedStep:         oneKernel(embed),
	device.EmbedGrad:         kernelLowering(embedGrad),
	device.EmbedGradAdd:      kernelLowering(embedGrad),
	device.TokenEmbedGrad:    kernelLowering(embedGrad),
	device.TokenEmbedGradAdd: kernelLowering(embedGrad),
	device.LastToken: oneKernel(func(x boundTask) kernels.Call {
		return kernels.LastToken(x.out[0], x.in[0], x.dims[0], x.dims[1], x.dims[2])
	}),

	device.Product:      product,
	device.ProductGradW: productGradW,

	device.LayerNorm:             oneKernel(layerNorm),
	device.LayerNormPlain:        oneKernel(layerNorm),
	device.AddLayerNorm:          oneKernel(layerNorm),
	device.AddLayerNormPlain:     oneKernel(layerNorm),
	device.RMSNorm:               oneKernel(layerNorm),
	device.LayerNormGrad:         kernelLowering(layerNormGrad),
	device.LayerNormPlainGrad:    kernelLowering(layerNormGrad),
	device.LayerNormGradAdd:      kernelLowering(layerNormGrad),
	device.LayerNormPlainGradAdd: kernelLowering(layerNormGrad),
	device.RMSNormGrad:           kernelLowering(layerNormGrad),

	device.GELUTanh:            gelu(kernels.GELUTanh),
	device.GELUErf:             gelu(kernels.GELUErf),
	device.GELUTanhGrad:        geluGrad(kernels.GELUTanh),
	device.GELUErfGrad:         geluGrad(kernels.GELUErf),
	device.LinearGELUTanh:      productGELU(kernels.GELUTanh),
	device.LinearGELUErf:       productGELU(kernels.GELUErf),
	device.ProductGELUTanh:     productGELU(kernels.GELUTanh),
	device.ProductGELUErf:      productGELU(kernels.GELUErf),
	device.LinearGradXGELUTanh: gradXGELU(kernels.GELUTanh),
	device.LinearGradXGELUErf:  gradXGELU(kernels.GELUErf),
	device.SwiGLU: oneKernel(func(x boundTask) kernels.Call {
		return kernels.SwiGLU(x.Element(), x.out[0], x.in[0], x.dims[0], x.dims[1])
	}),
	device.SwiGLUGrad: oneKernel(func(x boundTask) kernels.Call {
		return kernels.SwiGLUGrad(x.Element(), x.out[0], x.in[0], x.in[1], x.dims[0], x.dims[1])
	}),

	device.RoPE:          kernelLowering(func(x boundTask) []kernels.Call { return x.rope().Turn(1) }),
	device.RoPEStep:      kernelLowering(func(x boundTask) []kernels.Call { return x.rope().Turn(1) }),
	device.RoPEGrad:      kernelLowering(func(x boundTask) []kernels.Call { return x.rope().Turn(-1) }),
	device.Attention:     attention,
	device.AttentionGrad: attentionGrad,
	device.AttentionStep: kernelLowering(func(x boundTask) []kernels.Call {
		a := attentionStepOf(x.Call)
		a.Scratch, a.QKV, a.Cache, a.At, a.Y, a.Moved = x.scratch, x.in[0], x.in[1], x.in[2], x.out[0], x.out[1]
		return a.Calls()
	}),
}

// normalisations lists the batch normalisations and their gradients.
var normalisations = map[device.Kernel]normalisation{
	device.BatchNorm:            batchNorm(kernels.Plain),
	device.BatchNormReLU:        batchNorm(kernels.ReLU),
	device.BatchNormAddReLU:     batchNorm(kernels.AddReLU),
	device.BatchNormGrad:        batchNormGrad(kernels.Plain),
	device.BatchNormReLUGrad:    batchNormGrad(kernels.ReLU),
	device.BatchNormAddReLUGrad: batchNormGrad(kernels.AddReLU),
	device.Normalize:            normalize(kernels.Plain),
	device.NormalizeReLU:        normalize(kernels.ReLU),
	device.NormalizeAddReLU:     normalize(kernels.AddReLU),
}

func init() {
	for k, n := range normalisations {
		lowerings[k] = kernelLowering(n.calls)
	}
}

func checkKernels(code *device.Code) error {
	for i := range code.Calls {
		if c := &code.Calls[i]; lowerings[c.Kernel] == nil {
			return fmt.Errorf("call %d, %s: %w: choose device cpu", i, signature.Title(c), device.ErrNoKernel)
		}
	}
	return nil
}

func newLowerer(d *Device, p *compiler.Plan) *lowerer {
	return &lowerer{Device: d, masked: map[*compiler.ReLUMask]*cublas.Matmul{},
		gelus: map[geluShape]bool{}, layout: d.layoutOf(p)}
}

func (l *lowerer) lower(p *compiler.Plan) ([]step, error) {
	steps := make([]step, len(p.Tasks))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		make := internalLowerings[t.Work]
		if t.Work == compiler.Compute {
			make = lowerings[t.Call.Kernel]
		}
		if make == nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, t.Title(), device.ErrNoKernel)
		}
		var err error
		if steps[i], err = make(l, t); err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, t.Title(), err)
		}
	}
	return steps, nil
}

// boundTask is a task with the addresses of its operands in a run.
type boundTask struct {
	*launchEnv
	*compiler.Task
	in, out []kernels.Address
	dims    []int
	attr    float64
}

func (env *launchEnv) bind(t *compiler.Task) boundTask {
	at := func(all []compiler.Operand) []kernels.Address {
		found := make([]kernels.Address, len(all))
		for i, o := range all {
			found[i] = env.address(o)
		}
		return found
	}
	x := boundTask{launchEnv: env, Task: t, in: at(t.In), out: at(t.Out)}
	if t.Call != nil {
		x.dims, x.attr = t.Call.Dims, t.Call.Attr
	}
	return x
}

func (env *launchEnv) address(o compiler.Operand) kernels.Address {
	return env.spaces[o.Space] + kernels.Address(o.Offset)
}

// kernelLowering is the lowering of a task that is kernels only.
func kernelLowering(calls func(x boundTask) []kernels.Call) lowering {
	return func(_ *lowerer, t *compiler.Task) (step, error) {
		return func(env *launchEnv) error { return env.ex.Launch(calls(env.bind(t))...) }, nil
	}
}

// oneKernel is kernelLowering for a task of one kernel.
func oneKernel(call func(x boundTask) kernels.Call) lowering {
	return kernelLowering(func(x boundTask) []kernels.Call { return []kernels.Call{call(x)} })
}

// labelLowering is kernelLowering for kernels that read labels, which the host has checked.
func labelLowering(calls func(x boundTask) []kernels.Call) lowering {
	make := kernelLowering(calls)
	return func(l *lowerer, t *compiler.Task) (step, error) {
		if err := checkLabels(t); err != nil {
			return nil, err
		}
		return make(l, t)
	}
}

// checkLabels returns an error unless input 1 of a call is the labels.
func checkLabels(t *compiler.Task) error {
	if in := t.Call.In[1]; in.Space != device.Labels {
		return fmt.Errorf("input 1 is at %s, want the labels of the batch", in)
	}
	return nil
}

// arrivedBytes returns the bytes of the counts of blocks that have arrived. All normalisations of a
// plan share them, since one runs after the other.
func arrivedBytes(p *compiler.Plan) int {
	bytes := 0
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.Work != compiler.Compute {
			continue
		}
		if _, ok := normalisations[t.Call.Kernel]; ok {
			n := normOf(t, kernels.Plain)
			bytes = max(bytes, n.ArrivedBytes())
		}
	}
	return bytes
}

// scratchOf returns the scratch that the kernels of a task need, in bytes.
func scratchOf(t *compiler.Task) int {
	if t.Work == compiler.AddPenalties {
		return 8 * kernels.NewPenalties(t.Penalties).PartNumbers()
	}
	if t.Work != compiler.Compute {
		return 0
	}
	if _, ok := normalisations[t.Call.Kernel]; ok {
		n := normOf(t, kernels.Plain)
		return normFactors*compiler.Align(4*n.C) + 8*n.PartNumbers()
	}
	switch d := t.Call.Dims; t.Call.Kernel {
	case device.SoftmaxCrossEntropy, device.SoftmaxCrossEntropyMixed, device.Score:
		return 8 * (d[0] + 1)
	case device.HalfSquare:
		return 8 * kernels.DotParts(d[0])
	case device.GroupNorm, device.GroupNormReLU, device.GroupNormAddReLU, device.GroupNormGrad,
		device.GroupNormReLUGrad, device.GroupNormAddReLUGrad, device.EvoNorm, device.EvoNormGrad:
		n := groupNormOf(t, kernels.Plain)
		return n.ScratchBytes()
	case device.Conv, device.ConvGradX, device.ConvGradW:
		return convScratch(t)
	}
	return languageScratch(t.Call)
}
