package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/kernels"
)

// internalLowerings lists the kinds of tasks that the compiler adds.
var internalLowerings = map[compiler.Work]lowering{
	compiler.CastToHalf:      kernelLowering(castRowsToHalf),
	compiler.CastToFloat32:   kernelLowering(castRowsToFloat32),
	compiler.CastParams:      lowerCastParams,
	compiler.ScaleLoss:       kernelLowering(scaleGradient),
	compiler.FinishGradient:  lowerFinishGradient,
	compiler.UpdateBuffers:   lowerUpdateBuffers,
	compiler.AddPenalties:    lowerPenalties,
	compiler.ZeroIfNotFinite: kernelLowering(zeroGradient),
	compiler.UpdateScale:     kernelLowering(stepScaler),
}

func castRowsToHalf(x boundTask) []kernels.Call {
	if x.in[0] == x.out[0] { // written from bytes already: see compiler.Examples
		return nil
	}
	if n := x.Task.In[0].Len; x.Columns == x.Padded {
		return []kernels.Call{kernels.Narrow(x.Element(), x.out[0], x.in[0], 0, n)}
	}
	return []kernels.Call{kernels.Pad(x.Element(), x.out[0], x.in[0], x.Task.In[0].Len/x.Columns, x.Columns, x.Padded)}
}

func castRowsToFloat32(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.Widen(x.Task.In[0].Element, x.out[0], x.in[0], 0, x.Task.In[0].Len)}
}

func scaleGradient(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.ScaleBy(x.out[0], x.out[0], x.scaler, 1, x.Task.Out[0].Len)}
}

func zeroGradient(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.ZeroIfInf(x.out[0], x.scaler, x.Task.Out[0].Len)}
}

func stepScaler(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.ScalerStep(x.scaler, scaleGrowth, scaleBackoff, largestScale, scaleInterval)}
}
