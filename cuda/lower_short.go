package cuda

import "fspda/cuda/kernels"

// conversions has a lowering for every work that is no call.
var conversions = map[work]lowering{
	narrow:          launching(narrowRows),
	widen:           launching(widenRows),
	narrowStretches: shadows,
	scaleLoss:       launching(scaleGradient),
	endGradient:     endAll,
	moveBuffers:     moveAll,
	addPenalties:    addAll,
	dropFound:       launching(dropGradient),
	stepScale:       launching(stepScaler),
}

func narrowRows(x operands) []kernels.Call {
	if x.in[0] == x.out[0] { // examples that came as bytes: see plan.examples
		return nil
	}
	if n := x.task.in[0].n; x.columns == x.room {
		return []kernels.Call{kernels.Narrow(x.element(), x.out[0], x.in[0], 0, n)}
	}
	return []kernels.Call{kernels.Pad(x.element(), x.out[0], x.in[0], x.task.in[0].n/x.columns, x.columns, x.room)}
}

func widenRows(x operands) []kernels.Call {
	return []kernels.Call{kernels.Widen(x.task.in[0].element, x.out[0], x.in[0], 0, x.task.in[0].n)}
}

func scaleGradient(x operands) []kernels.Call {
	return []kernels.Call{kernels.ScaleBy(x.out[0], x.out[0], x.scaler, 1, x.task.out[0].n)}
}

func dropGradient(x operands) []kernels.Call {
	return []kernels.Call{kernels.Drop(x.out[0], x.scaler, x.task.out[0].n)}
}

func stepScaler(x operands) []kernels.Call {
	return []kernels.Call{kernels.ScalerStep(x.scaler, scaleGrowth, scaleBackoff, largestScale, scaleInterval)}
}
