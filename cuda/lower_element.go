package cuda

import "fspda/cuda/kernels"

func activate(f kernels.Activation) func(operands) []kernels.Call {
	return func(x operands) []kernels.Call {
		return []kernels.Call{kernels.Activate(x.out[0], x.in[0], x.dims[0], f)}
	}
}

func activateGrad(f kernels.Activation) func(operands) []kernels.Call {
	return func(x operands) []kernels.Call {
		return []kernels.Call{kernels.ActivateGrad(x.out[0], x.in[0], x.in[1], x.dims[0], f)}
	}
}

func softmaxCrossEntropy(x operands) []kernels.Call {
	return kernels.SoftmaxCrossEntropy(x.out[0], x.out[1], x.in[0], x.in[1], x.scratch, x.words.bad, x.dims[0], x.dims[1], x.attr)
}

func score(x operands) []kernels.Call {
	return kernels.Score(x.out[0], x.in[0], x.in[1], x.scratch, x.words.hits, x.words.bad, x.dims[0], x.dims[1])
}

func halfSquare(x operands) []kernels.Call {
	calls := kernels.Dot(0, x.out[0], x.in[0], x.in[0], x.scratch, x.dims[0], x.attr/2)
	return calls[:]
}

func scale(x operands) []kernels.Call {
	return []kernels.Call{kernels.Combine(x.out[0], x.dims[0], kernels.Term{A: float32(x.attr), V: x.in[0]})}
}

func scaleBy(x operands) []kernels.Call {
	return []kernels.Call{kernels.ScaleBy(x.out[0], x.in[0], x.in[1], float32(x.attr), x.dims[0])}
}

func add(x operands) []kernels.Call {
	return []kernels.Call{kernels.Add(x.out[0], x.in[0], x.in[1], x.dims[0])}
}

func addScaled(x operands) []kernels.Call {
	return []kernels.Call{kernels.Combine(x.out[0], x.dims[0], kernels.Term{A: 1, V: x.in[0]}, kernels.Term{A: float32(x.attr), V: x.in[1]})}
}

func moveAverage(x operands) []kernels.Call {
	return []kernels.Call{kernels.MoveAverage(x.out[0], x.in[0], x.in[1], x.in[2], x.attr, x.dims[0])}
}
