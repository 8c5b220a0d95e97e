package vec

import (
	"fspda/cpu/kernel"
	"fspda/device"
)

// Kernels are the element-wise kernels, reductions and losses.
var Kernels = kernel.Table{
	device.Sigmoid:             {Run: sigmoid},
	device.SigmoidGrad:         {Run: sigmoidGrad},
	device.ReLU:                {Run: relu},
	device.ReLUGrad:            {Run: reluGrad},
	device.SoftmaxCrossEntropy: {Run: softmaxCrossEntropy},
	device.Score:               {Run: score},
	device.HalfSquare:          {Run: halfSquare},
	device.Scale:               {Run: scale},
	device.ScaleBy:             {Run: scaleBy},
	device.Add:                 {Run: add},
	device.AddScaled:           {Run: addScaled},
	device.MoveAverage:         {Run: moveAverage},
}
