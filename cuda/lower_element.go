package cuda

import (
	"fspda/cuda/kernels"
	"fspda/device"
)

func activate(f kernels.Activation) lowering {
	return oneKernel(func(x boundTask) kernels.Call {
		return kernels.Activate(x.Element(), x.out[0], x.in[0], x.dims[0], f)
	})
}

func activateGrad(f kernels.Activation) lowering {
	return oneKernel(func(x boundTask) kernels.Call {
		return kernels.ActivateGrad(x.Element(), x.out[0], x.in[0], x.in[1], x.dims[0], f)
	})
}

func softmaxCrossEntropy(x boundTask) []kernels.Call {
	if x.Vocabulary > 0 {
		s := kernels.WideLoss{Element: x.Task.In[0].Element, M: x.dims[0], N: x.dims[1], Padded: x.Vocabulary,
			Smoothing: x.attr, Logits: x.in[0], Labels: x.in[1], Loss: x.out[0], DLogits: x.out[1], RowLoss: x.scratch,
			Bad: x.scalars.bad}
		if x.ScalesLoss {
			s.Scaler = x.scaler
		}
		return s.Calls()
	}
	return kernels.SoftmaxCrossEntropy(x.out[0], x.out[1], x.in[0], x.in[1], x.scratch, x.scalars.bad, x.dims[0],
		x.dims[1], x.attr)
}

func score(x boundTask) []kernels.Call {
	return kernels.Score(x.out[0], x.in[0], x.in[1], x.scratch, x.scalars.hits, x.scalars.bad, x.dims[0], x.dims[1])
}

func halfSquare(x boundTask) []kernels.Call {
	calls := kernels.Dot(0, x.out[0], x.in[0], x.in[0], x.scratch, x.dims[0], x.attr/2)
	return calls[:]
}

func scale(x boundTask) kernels.Call {
	if e := x.Element(); e != kernels.F32 {
		return kernels.WeightedSum(e, x.out[0], x.in[0], 0, float32(x.attr), 0, x.dims[0])
	}
	return kernels.Combine(x.out[0], x.dims[0], kernels.Term{A: float32(x.attr), V: x.in[0]})
}

// sum is the lowering of device.Add and device.AddScaled.
func sum(x boundTask) kernels.Call {
	c := float32(1)
	if x.Call.Kernel == device.AddScaled {
		c = float32(x.attr)
	}
	n := x.dims[0]
	switch e := x.Element(); {
	case x.LacksScale != nil:
		return x.addScaled(x.in[0], x.in[1], c, n)
	case e != kernels.F32:
		return kernels.WeightedSum(e, x.out[0], x.in[0], x.in[1], 1, c, n)
	case x.Call.Kernel == device.Add:
		return kernels.Add(x.out[0], x.in[0], x.in[1], n)
	}
	return kernels.Combine(x.out[0], n, kernels.Term{A: 1, V: x.in[0]}, kernels.Term{A: c, V: x.in[1]})
}

// addScaled returns the kernel of output 0 = a + c·b, where the summand that lacks the loss scale
// is multiplied by it.
func (x boundTask) addScaled(a, b kernels.Address, c float32, n int) kernels.Call {
	var by [2]kernels.Address
	for i, lacks := range x.LacksScale {
		if lacks {
			by[i] = x.scaler
		}
	}
	return kernels.ScaledSum(x.out[0], a, b, by[0], by[1], 1, c, n)
}
