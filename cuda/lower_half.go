package cuda

import "fspda/cuda/kernels"

// conversions has a lowering for every work that is no call.
var internalLowerings = map[work]lowering{
	castToHalf:      kernelLowering(castRowsToHalf),
	castToFloat32:   kernelLowering(castRowsToFloat32),
	castParams:      lowerCastParams,
	scaleLoss:       kernelLowering(scaleGradient),
	finishGradient:  lowerFinishGradient,
	updateBuffers:   lowerUpdateBuffers,
	addPenalties:    lowerPenalties,
	zeroIfNotFinite: kernelLowering(zeroGradient),
	updateScale:     kernelLowering(stepScaler),
}

func castRowsToHalf(x boundTask) []kernels.Call {
	if x.in[0] == x.out[0] { // examples that came as bytes: see plan.examples
		return nil
	}
	if n := x.task.in[0].n; x.columns == x.padded {
		return []kernels.Call{kernels.Narrow(x.element(), x.out[0], x.in[0], 0, n)}
	}
	return []kernels.Call{kernels.Pad(x.element(), x.out[0], x.in[0], x.task.in[0].n/x.columns, x.columns, x.padded)}
}

func castRowsToFloat32(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.Widen(x.task.in[0].element, x.out[0], x.in[0], 0, x.task.in[0].n)}
}

func scaleGradient(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.ScaleBy(x.out[0], x.out[0], x.scaler, 1, x.task.out[0].n)}
}

func zeroGradient(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.Drop(x.out[0], x.scaler, x.task.out[0].n)}
}

func stepScaler(x boundTask) []kernels.Call {
	return []kernels.Call{kernels.ScalerStep(x.scaler, scaleGrowth, scaleBackoff, largestScale, scaleInterval)}
}
