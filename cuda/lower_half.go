package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/kernels"
)

// internalLowerings lists the kinds of tasks that the compiler adds.
var internalLowerings = map[compiler.Work]lowering{
	compiler.CastToHalf: kernelLowering(castRowsToHalf),
	compiler.CastToFloat32: oneKernel(func(x boundTask) kernels.Call {
		return kernels.Widen(x.Task.In[0].Element, x.out[0], x.in[0], x.Task.In[0].Len)
	}),
	compiler.CastParams: lowerCastParams,
	compiler.ScaleLoss: oneKernel(func(x boundTask) kernels.Call {
		return kernels.ScaleBy(x.out[0], x.out[0], x.scaler, 1, x.Task.Out[0].Len)
	}),
	compiler.FinishGradient: lowerFinishGradient,
	compiler.UpdateBuffers:  lowerUpdateBuffers,
	compiler.AddPenalties:   lowerPenalties,
	compiler.ZeroIfNotFinite: oneKernel(func(x boundTask) kernels.Call {
		return kernels.ZeroIfInf(x.out[0], x.scaler, x.Task.Out[0].Len)
	}),
	compiler.UpdateScale: oneKernel(func(x boundTask) kernels.Call {
		return kernels.ScalerStep(x.scaler, scaleGrowth, scaleBackoff, largestScale, scaleInterval)
	}),
}

func castRowsToHalf(x boundTask) []kernels.Call {
	if x.in[0] == x.out[0] { // written from bytes already: see compiler.Examples
		return nil
	}
	n := x.Task.In[0].Len
	if x.Columns == x.Padded {
		return []kernels.Call{kernels.Narrow(x.Element(), x.out[0], x.in[0], n)}
	}
	return []kernels.Call{kernels.Pad(x.Element(), x.out[0], x.in[0], n/x.Columns, x.Columns, x.Padded)}
}
