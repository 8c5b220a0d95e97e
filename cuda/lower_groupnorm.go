package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/kernels"
)

// addBias is the lowering of device.AddBias, with an activation.
func addBias(f kernels.Activation) func(boundTask) kernels.Call {
	return func(x boundTask) kernels.Call {
		return kernels.ChannelBias(x.Element(), x.out[0], x.in[0], x.in[1], x.dims[0], x.dims[1], f)
	}
}

func groupNormOf(t *compiler.Task, follows kernels.NormEpilogue) kernels.GroupNorm {
	d := t.Call.Dims
	return kernels.GroupNorm{Element: t.Element(), Images: d[0], M: d[1], C: d[2], G: d[3], Eps: t.Call.Attr,
		Epilogue: follows}
}

// groupNorm is the lowering of device.GroupNorm, with an epilogue.
func groupNorm(follows kernels.NormEpilogue) func(boundTask) []kernels.Call {
	return func(x boundTask) []kernels.Call {
		n := groupNormOf(x.Task, follows)
		n.Scratch, n.X, n.Gamma, n.Beta = x.scratch, x.in[0], x.in[1], x.in[2]
		if follows == kernels.AddReLU {
			n.Z = x.in[3]
		}
		n.Y, n.Mean, n.Variance = x.out[0], x.out[1], x.out[2]
		return n.Forward()
	}
}

// groupNormGrad is the lowering of device.GroupNormGrad, with the epilogue of the forward pass.
func groupNormGrad(follows kernels.NormEpilogue) func(boundTask) []kernels.Call {
	return func(x boundTask) []kernels.Call {
		n := groupNormOf(x.Task, follows)
		in := x.in[1:]
		n.Scratch, n.X = x.scratch, x.in[0]
		if follows != kernels.Plain {
			n.Y, in = in[0], in[1:]
		}
		n.DY, n.Gamma, n.Mean, n.Variance = in[0], in[1], in[2], in[3]
		n.DX, n.DGamma, n.DBeta = x.out[0], x.out[len(x.out)-2], x.out[len(x.out)-1]
		if follows == kernels.AddReLU {
			n.DZ = x.out[1]
		}
		return n.Grad()
	}
}

func evoNorm(x boundTask) []kernels.Call {
	n := groupNormOf(x.Task, kernels.Plain)
	n.Scratch, n.X, n.Gamma, n.Beta, n.V = x.scratch, x.in[0], x.in[1], x.in[2], x.in[3]
	n.Y, n.Mean, n.Variance = x.out[0], x.out[1], x.out[2]
	return n.EvoForward()
}

func evoNormGrad(x boundTask) []kernels.Call {
	n := groupNormOf(x.Task, kernels.Plain)
	n.Scratch, n.X, n.DY, n.Gamma, n.V = x.scratch, x.in[0], x.in[1], x.in[2], x.in[3]
	n.Mean, n.Variance = x.in[4], x.in[5]
	n.DX, n.DGamma, n.DBeta, n.DV = x.out[0], x.out[1], x.out[2], x.out[3]
	return n.EvoGrad()
}
