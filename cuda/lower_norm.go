package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/kernels"
)

// normFactors is how many vectors of one number for each column a normalisation needs as scratch:
// three of the gradient, the scale and the shift.
const normFactors = 5

func normOf(t *compiler.Task, follows kernels.NormEpilogue) kernels.Norm {
	return kernels.Norm{Element: t.Element(), M: t.Call.Dims[0], C: t.Call.Dims[1], Eps: t.Call.Attr, Epilogue: follows}
}

// norm returns a normalisation of the call's shape, with its scratch.
func (x boundTask) norm(follows kernels.NormEpilogue) kernels.Norm {
	n := normOf(x.Task, follows)
	at := x.scratch
	for _, factor := range []*kernels.Address{&n.FactorA, &n.FactorB, &n.FactorE, &n.Scale, &n.Shift} {
		*factor = at
		at += kernels.Address(compiler.Align(4 * n.C))
	}
	n.Part, n.Arrived = at, x.scalars.arrived
	if k := x.Saved; k != nil && k.ByMask {
		n.Mask = x.address(k.Operands[0])
	} else if k != nil {
		n.Scale, n.Shift = x.address(k.Operands[0]), x.address(k.Operands[1])
	}
	if x.PairSaved != nil {
		n.MeanZ, n.ScaleZ, n.ShiftZ = x.address(*x.PairMean), x.address(x.PairSaved.Operands[0]),
			x.address(x.PairSaved.Operands[1])
	}
	return n
}

// normalisation is the two kernels of a normalisation or its gradient, the sums and the map, and
// how a task becomes their operands.
type normalisation struct {
	norm        func(x boundTask) kernels.Norm
	sums, apply func(n *kernels.Norm) kernels.Call
}

// calls returns the kernels of a task. The next normalisation applies a deferred one.
func (f normalisation) calls(x boundTask) []kernels.Call {
	n := f.norm(x)
	if x.Deferred {
		return []kernels.Call{f.sums(&n)}
	}
	return []kernels.Call{f.sums(&n), f.apply(&n)}
}

// batchNorm is device.BatchNorm, with an epilogue.
func batchNorm(follows kernels.NormEpilogue) normalisation {
	return normalisation{func(x boundTask) kernels.Norm {
		n := x.norm(follows)
		n.X, n.Gamma, n.Beta = x.in[0], x.in[1], x.in[2]
		if follows == kernels.AddReLU {
			n.Z = x.in[3]
		}
		n.Y, n.Mean, n.Variance = x.out[0], x.out[1], x.out[2]
		return n
	}, (*kernels.Norm).Statistics, (*kernels.Norm).Apply}
}

// normalize is device.Normalize, with an epilogue.
func normalize(follows kernels.NormEpilogue) normalisation {
	return normalisation{func(x boundTask) kernels.Norm {
		n := x.norm(follows)
		n.X, n.Gamma, n.Beta, n.Mean, n.Variance = x.in[0], x.in[1], x.in[2], x.in[3], x.in[4]
		if follows == kernels.AddReLU {
			n.Z = x.in[5]
		}
		n.Y = x.out[0]
		return n
	}, (*kernels.Norm).Given, (*kernels.Norm).Apply}
}

// batchNormGrad is device.BatchNormGrad, with the epilogue of the forward pass.
func batchNormGrad(follows kernels.NormEpilogue) normalisation {
	return normalisation{func(x boundTask) kernels.Norm {
		n := x.norm(follows)
		in := x.in
		n.X = in[0]
		if follows != kernels.Plain {
			n.Y, in = in[1], in[1:]
		}
		if x.Saved != nil {
			n.Y = 0
		}
		if x.Addend != nil {
			n.Other = x.address(*x.Addend)
		}
		n.DY, n.Gamma, n.Mean, n.Variance = in[1], in[2], in[3], in[4]
		n.DX, n.DGamma, n.DBeta = x.out[0], x.out[len(x.out)-2], x.out[len(x.out)-1]
		if follows == kernels.AddReLU {
			n.DZ = x.out[1]
		}
		return n
	}, (*kernels.Norm).GradSums, (*kernels.Norm).GradApply}
}
