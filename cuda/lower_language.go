package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/kernels"
	"fspda/device"
)

func embeddingOf(c *device.Call) kernels.Embedding {
	e := kernels.Embedding{M: c.Dims[0], V: c.Dims[1], C: c.Dims[2]}
	if len(c.Dims) > 3 {
		e.Places = c.Dims[3]
	}
	if len(c.Dims) > 4 {
		e.T = c.Dims[4]
	}
	return e
}

// embed is the lowering of device.Embed, device.TokenEmbed and device.EmbedStep.
func embed(x boundTask) kernels.Call {
	e := embeddingOf(x.Call)
	e.IDs, e.Tokens, e.Y = x.in[0], x.in[1], x.out[0]
	if len(x.in) > 2 {
		e.Positions = x.in[2]
	}
	if len(x.in) > 3 {
		e.At = x.in[3]
	}
	return e.Forward()
}

// embedGrad is the lowering of device.EmbedGrad and its variants.
func embedGrad(x boundTask) []kernels.Call {
	e := embeddingOf(x.Call)
	e.Scratch, e.IDs, e.DY, e.DTokens = x.scratch, x.in[0], x.in[1], x.out[0]
	if len(x.in) > 2 {
		e.Base = x.in[2]
	}
	if len(x.out) > 1 {
		e.DPositions = x.out[1]
	}
	return e.Grad()
}

func product(_ *lowerer, t *compiler.Task) (step, error) {
	return func(env *launchEnv) error {
		x := env.bind(t)
		return x.product(x.dims[0], vocabulary(t), x.dims[2], 0, false, 1, true)
	}, nil
}

// productGradW is the lowering of device.ProductGradW, dW = dyᵀ·x.
func productGradW(_ *lowerer, t *compiler.Task) (step, error) {
	return func(env *launchEnv) error {
		x := env.bind(t)
		return x.product(vocabulary(t), x.dims[2], x.dims[0], 1, true, 0, false)
	}, nil
}

// vocabulary returns the columns of a product, or the rows of a gradient of weights, with padding.
func vocabulary(t *compiler.Task) int { return max(t.Call.Dims[1], t.Vocabulary) }

// productGELU is the lowering of device.LinearGELUTanh and its variants: output 0 is the product,
// output 1 its GELU.
func productGELU(f kernels.GELUForm) lowering {
	return func(l *lowerer, t *compiler.Task) (step, error) {
		if by := l.geluProduct(t, f); by != nil {
			return ltGELU(by, t), nil
		}
		return func(env *launchEnv) error {
			x := env.bind(t)
			m, n, k := x.dims[0], x.dims[1], x.dims[2]
			if err := x.product(m, n, k, 0, false, 1, true); err != nil {
				return err
			}
			var bias kernels.Address
			if len(x.in) > 2 {
				bias = x.bias()
			}
			return env.ex.Launch(kernels.BiasGELU(x.Element(), f, x.out[1], x.out[0], bias, m, n))
		}, nil
	}
}

// gradXGELU is the lowering of device.LinearGradXGELUTanh and device.LinearGradXGELUErf.
func gradXGELU(f kernels.GELUForm) lowering {
	return func(l *lowerer, t *compiler.Task) (step, error) {
		if by := l.geluGradX(t, f); by != nil {
			return ltGELUGrad(by, t), nil
		}
		return func(env *launchEnv) error {
			x := env.bind(t)
			m, n, k := x.dims[0], x.dims[1], x.dims[2]
			if err := x.product(m, k, n, 0, false, 1, false); err != nil {
				return err
			}
			return env.ex.Launch(kernels.GELUGrad(x.Element(), f, x.out[0], x.in[2], x.out[0], m*k))
		}, nil
	}
}

func gelu(f kernels.GELUForm) lowering {
	return oneKernel(func(x boundTask) kernels.Call {
		return kernels.GELU(x.Element(), f, x.out[0], x.in[0], x.dims[0])
	})
}

func geluGrad(f kernels.GELUForm) lowering {
	return oneKernel(func(x boundTask) kernels.Call {
		return kernels.GELUGrad(x.Element(), f, x.out[0], x.in[0], x.in[1], x.dims[0])
	})
}

func layerNormOf(c *device.Call) kernels.LayerNorm {
	return kernels.LayerNorm{M: c.Dims[0], C: c.Dims[1], Eps: c.Attr}
}

// layerNorm is the lowering of device.LayerNorm, its variants, and device.RMSNorm.
func layerNorm(x boundTask) kernels.Call {
	n, in, out := layerNormOf(x.Call), x.in, x.out
	n.X, in = in[0], in[1:]
	switch x.Call.Kernel {
	case device.AddLayerNorm, device.AddLayerNormPlain:
		n.Addend, in = in[0], in[1:]
		n.S, out = out[0], out[1:]
	}
	n.Element = x.Task.Out[len(x.out)-len(out)].Element
	n.Gamma, n.Y, out = in[0], out[0], out[1:]
	if len(in) > 1 {
		n.Beta = in[1]
	}
	if len(out) > 1 {
		n.Mean, out = out[0], out[1:]
	}
	n.RStd = out[0]
	return n.Forward()
}

// layerNormGrad is the lowering of the gradients of layer norm and RMS norm.
func layerNormGrad(x boundTask) []kernels.Call {
	n := layerNormOf(x.Call)
	n.Element = x.Task.In[1].Element
	n.Scratch, n.X, n.DY, n.Gamma = x.scratch, x.in[0], x.in[1], x.in[2]
	statistics := x.in[3:]
	if len(statistics) > 1 {
		n.Mean, statistics = statistics[0], statistics[1:]
	}
	if n.RStd = statistics[0]; len(statistics) > 1 {
		n.DXAddend = statistics[1]
	}
	if n.DX, n.DGamma = x.out[0], x.out[1]; len(x.out) > 2 {
		n.DBeta = x.out[2]
	}
	if x.Task.Rounded != nil {
		n.Rounded = x.address(*x.Task.Rounded)
	}
	if x.Task.Sums != nil {
		n.Sums = x.address(*x.Task.Sums)
	}
	return n.Grad()
}

// ropeOf returns the shape of device.RoPE, or of device.RoPEStep, which has one window.
func ropeOf(c *device.Call) kernels.RoPE {
	d := c.Dims
	if c.Kernel == device.RoPEStep {
		return kernels.RoPE{M: d[0], T: d[0], Heads: d[1], Width: d[2], Theta: c.Attr}
	}
	return kernels.RoPE{M: d[0] * d[1], T: d[1], Heads: d[2], Width: d[3], Theta: c.Attr}
}

func (x boundTask) rope() *kernels.RoPE {
	r := ropeOf(x.Call)
	r.Scratch, r.X, r.Y = x.scratch, x.in[0], x.out[0]
	if len(x.in) > 1 {
		r.At = x.in[1]
	}
	return &r
}

func attentionStepOf(c *device.Call) *kernels.AttentionStep {
	d := c.Dims
	return &kernels.AttentionStep{M: d[0], Places: d[1], Heads: d[2], Width: d[3]}
}

// languageScratch returns the scratch that a kernel of language models needs, in bytes.
func languageScratch(c *device.Call) int {
	switch c.Kernel {
	case device.EmbedGrad, device.EmbedGradAdd, device.TokenEmbedGrad, device.TokenEmbedGradAdd:
		e := embeddingOf(c)
		return e.ScratchBytes()
	case device.LayerNormGrad, device.LayerNormPlainGrad, device.LayerNormGradAdd, device.LayerNormPlainGradAdd,
		device.RMSNormGrad:
		n := layerNormOf(c)
		return n.ScratchBytes()
	case device.RoPE, device.RoPEGrad, device.RoPEStep:
		r := ropeOf(c)
		return r.ScratchBytes()
	case device.AttentionGrad:
		return attentionOf(c).ScratchBytes()
	case device.AttentionStep:
		return attentionStepOf(c).ScratchBytes()
	}
	return 0
}
