package vec

import (
	"fspda/cpu/kernel"
	"fspda/device"
)

// Kernels are the element-wise kernels, reductions and losses.
var Kernels = kernel.Table{
	device.Sigmoid:                  {Run: sigmoid},
	device.SigmoidGrad:              {Run: sigmoidGrad},
	device.ReLU:                     {Run: relu},
	device.ReLUGrad:                 {Run: reluGrad},
	device.SoftmaxCrossEntropy:      {Run: softmaxCrossEntropy},
	device.SoftmaxCrossEntropyMixed: {Run: softmaxCrossEntropy},
	device.Score:                    {Run: score},
	device.HalfSquare:               {Run: halfSquare},
	device.Scale:                    {Run: scale},
	device.ScaleBy:                  {Run: scaleBy},
	device.Add:                      {Run: add, Half: addsHalves},
	device.AddScaled:                {Run: addScaled},
	device.Dropout:                  {Run: dropout},
	device.MoveAverage:              {Run: moveAverage},
	device.GELUTanh:                 {Run: geluTanh},
	device.GELUTanhGrad:             {Run: geluTanhGrad},
	device.GELUErf:                  {Run: geluErf},
	device.GELUErfGrad:              {Run: geluErfGrad},
	device.SwiGLU:                   {Run: swiGLU},
	device.SwiGLUGrad:               {Run: swiGLUGrad},
}

// inParts returns a kernel that divides the numbers of its output among the workers, in whole cache
// lines.
func inParts(run func(o *kernel.Args, from, to int)) func(*kernel.Args) error {
	part := func(o *kernel.Args, part, of int) {
		from, to := kernel.SplitUnits(part, of, outputs(o), kernel.LineFloats)
		run(o, from, to)
	}
	return func(o *kernel.Args) error {
		o.ParallelRange(outputs(o), part)
		return nil
	}
}

// outputs returns how many numbers the output has.
func outputs(o *kernel.Args) int {
	if o.Half.Output(0) {
		return 2 * len(o.Out[0])
	}
	return len(o.Out[0])
}
