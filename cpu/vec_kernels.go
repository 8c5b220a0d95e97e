package cpu

import "fspda/device"

// vecKernels are the kernels over vectors and rows.
var vecKernels = table{
	device.Sigmoid:             {run: sigmoid},
	device.SigmoidGrad:         {run: sigmoidGrad},
	device.ReLU:                {run: relu},
	device.ReLUGrad:            {run: reluGrad},
	device.SoftmaxCrossEntropy: {run: softmaxCrossEntropy},
	device.Score:               {run: score},
	device.HalfSquare:          {run: halfSquare},
	device.Scale:               {run: scale},
	device.ScaleBy:             {run: scaleBy},
	device.Add:                 {run: add},
	device.AddScaled:           {run: addScaled},
	device.MoveAverage:         {run: moveAverage},
}
