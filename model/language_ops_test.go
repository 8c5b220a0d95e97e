package model

import (
	"gorgonia.org/gorgonia"

	"fspda/device"
)

// tokenLeaf returns windows of tokens below 4: the labels of the batch.
func tokenLeaf(b *builder, shape ...int) *gorgonia.Node { return b.input(device.Labels, shape...) }

func init() {
	for name, c := range map[string]derivativeCase{
		"embed": {device.Embed, func(b *builder) *gorgonia.Node {
			return b.apply(device.Embed, 0, tokenLeaf(b, 1, 3), b.param("tokens", 1, 5, 2), b.param("positions", 1,
				4, 2))
		}},
		"a token embedding that is also the last layer": {device.TokenEmbed, func(b *builder) *gorgonia.Node {
			w := b.param("tokens", 1, 5, 2)
			return b.apply(device.Product, 0, b.apply(device.TokenEmbed, 0, tokenLeaf(b, 3), w), w)
		}},
		"product": {device.Product, func(b *builder) *gorgonia.Node {
			return b.apply(device.Product, 0, b.param("x", 1, 2, 3, 4), b.param("w", 1, 2, 4))
		}},
		"linear of windows": {device.Linear, func(b *builder) *gorgonia.Node {
			return b.apply(device.Linear, 0, b.param("x", 1, 2, 3, 4), b.param("w", 1, 2, 4), b.param("b", 1, 2))
		}},
		"layer norm": {device.LayerNorm, func(b *builder) *gorgonia.Node {
			return b.apply(device.LayerNorm, 1e-5, b.param("x", 1, 2, 2, 5), b.param("gamma", 1, 5), b.param("beta",
				1, 5))
		}},
		"layer norm without beta": {device.LayerNormPlain, func(b *builder) *gorgonia.Node {
			return b.apply(device.LayerNormPlain, 1e-5, b.param("x", 1, 3, 5), b.param("gamma", 1, 5))
		}},
		"layer norm of a residual sum": {device.LayerNorm, func(b *builder) *gorgonia.Node {
			x, y := b.param("x", 1, 2, 5), b.param("y", 1, 2, 5)
			s := b.apply(device.Add, 0, x, y)
			n := b.apply(device.LayerNorm, 1e-5, s, b.param("gamma", 1, 5), b.param("beta", 1, 5))
			return b.apply(device.Add, 0, s, b.apply(device.Sigmoid, 0, n))
		}},
		"plain layer norm of a residual sum": {device.LayerNormPlain, func(b *builder) *gorgonia.Node {
			x, y := b.param("x", 1, 2, 5), b.param("y", 1, 2, 5)
			s := b.apply(device.Add, 0, x, y)
			n := b.apply(device.LayerNormPlain, 1e-5, s, b.param("gamma", 1, 5))
			return b.apply(device.Add, 0, s, b.apply(device.Sigmoid, 0, n))
		}},
		"rms norm": {device.RMSNorm, func(b *builder) *gorgonia.Node {
			return b.apply(device.RMSNorm, 1e-5, b.param("x", 1, 2, 2, 5), b.param("gamma", 1, 5))
		}},
		"gelu tanh": unary(device.GELUTanh, 0),
		"gelu erf":  unary(device.GELUErf, 0),
		"gelu of a layer": {device.GELUTanh, func(b *builder) *gorgonia.Node {
			y := b.apply(device.Linear, 0, b.param("x", 1, 3, 4), b.param("w", 1, 2, 4), b.param("b", 1, 2))
			return b.apply(device.Product, 0, b.apply(device.GELUTanh, 0, y), b.param("v", 1, 3, 2))
		}},
		"erf gelu of a product": {device.GELUErf, func(b *builder) *gorgonia.Node {
			y := b.apply(device.Product, 0, b.param("x", 1, 3, 4), b.param("w", 1, 2, 4))
			return b.apply(device.Product, 0, b.apply(device.GELUErf, 0, y), b.param("v", 1, 3, 2))
		}},
		"swiglu": {device.SwiGLU, func(b *builder) *gorgonia.Node {
			return b.apply(device.SwiGLU, 0, b.param("gu", 1, 2, 3, 8))
		}},
		"rope": {device.RoPE, func(b *builder) *gorgonia.Node {
			return b.applyAs(device.RoPE, geometry{heads: 2}, 100, b.param("x", 1, 1, 3, 24))
		}},
		"attention": {device.Attention, func(b *builder) *gorgonia.Node {
			return b.applyWindow(device.Attention, geometry{heads: 2}, b.param("qkv", 1, 2, 4, 18))
		}},
	} {
		opCases[name] = c
	}
}
