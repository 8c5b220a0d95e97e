package model

import (
	"gorgonia.org/gorgonia"

	"fspda/device"
)

// languageDefinitions adds the kernels of language models.
func languageDefinitions(table map[device.Kernel]*definition) {
	const linear, embed, token, heads = "* n k", "bT v c i T", "* v c", "b T H e"
	one, both, three := []bool{true}, []bool{true, true}, []bool{true, true, true}
	second, others := []bool{false, true}, []bool{false, true, true}
	for _, d := range []definition{
		{device.Embed, "bT vc ic", "bTc", embed, others, embedDerivative},
		{device.EmbedGrad, "bT bTc", "vc ic", embed, nil, nil},
		{device.EmbedGradAdd, "bT bTc vc", "vc ic", embed, nil, nil},
		{device.TokenEmbed, "* vc", "*c", token, second, tokenEmbedDerivative},
		{device.TokenEmbedGrad, "* *c", "vc", token, nil, nil},
		{device.TokenEmbedGradAdd, "* *c vc", "vc", token, nil, nil},
		{device.LastToken, "bTc", "bc", "b T c", nil, nil},
		{device.Product, "*k nk", "*n", linear, both, productDerivative},
		{device.ProductGradW, "*k *n", "nk", linear, nil, nil},
		{device.LayerNorm, "*c c c", "*c * *", "* c", three, layerNormDerivative},
		{device.LayerNormPlain, "*c c", "*c * *", "* c", both, layerNormPlainDerivative},
		{device.LayerNormGrad, "*c *c c * *", "*c c c", "* c", nil, nil},
		{device.LayerNormPlainGrad, "*c *c c * *", "*c c", "* c", nil, nil},
		{device.AddLayerNorm, "*c *c c c", "*c *c * *", "* c", nil, nil},
		{device.AddLayerNormPlain, "*c *c c", "*c *c * *", "* c", nil, nil},
		{device.LayerNormGradAdd, "*c *c c * * *c", "*c c c", "* c", nil, nil},
		{device.LayerNormPlainGradAdd, "*c *c c * * *c", "*c c", "* c", nil, nil},
		{device.RMSNorm, "*c c", "*c *", "* c", both, rmsNormDerivative},
		{device.RMSNormGrad, "*c *c c *", "*c c", "* c", nil, nil},
		{device.GELUTanh, "*", "*", "*", one, ofInput(device.GELUTanhGrad)},
		{device.GELUTanhGrad, "* *", "*", "*", nil, nil},
		{device.GELUErf, "*", "*", "*", one, ofInput(device.GELUErfGrad)},
		{device.GELUErfGrad, "* *", "*", "*", nil, nil},
		{device.LinearGELUTanh, "*k nk n", "*n *n", linear, nil, nil},
		{device.LinearGELUErf, "*k nk n", "*n *n", linear, nil, nil},
		{device.ProductGELUTanh, "*k nk", "*n *n", linear, nil, nil},
		{device.ProductGELUErf, "*k nk", "*n *n", linear, nil, nil},
		{device.LinearGradXGELUTanh, "*n nk *k", "*k", linear, nil, nil},
		{device.LinearGradXGELUErf, "*n nk *k", "*k", linear, nil, nil},
		{device.SwiGLU, "*2f", "*f", "* f", one, ofInput(device.SwiGLUGrad)},
		{device.SwiGLUGrad, "*2f *f", "*2f", "* f", nil, nil},
		{device.RoPE, "bT3c", "bT3c", heads, one, ropeDerivative},
		{device.RoPEGrad, "bT3c", "bT3c", heads, nil, nil},
		{device.Attention, "bT3c", "bTc bHT", heads, one, attentionDerivative},
		{device.AttentionGrad, "bT3c bTc bHT bTc", "bT3c", heads, nil, nil},
		{device.EmbedStep, "bT vc ic 1", "bTc", "bT v c i", nil, nil},
		{device.RoPEStep, "bT3c 1", "bT3c", "bT H e", nil, nil},
		{device.AttentionStep, "bT3c i2c 1", "bTc i2c", "bT i H e", nil, nil},
	} {
		table[d.kernel] = &d
	}
}

// embedDerivative differentiates by the tensors of the embedding: the tokens have no derivative.
func embedDerivative(d derivation, grads gorgonia.Nodes) {
	g := geometry{vocabulary: d.in[1].Shape()[0], positions: d.in[2].Shape()[0]}
	grads[1] = d.b.applyWindow(device.EmbedGrad, g, d.in[0], d.grad)
	grads[2] = d.b.project(grads[1], 1)
}

func tokenEmbedDerivative(d derivation, grads gorgonia.Nodes) {
	grads[1] = d.b.applyWindow(device.TokenEmbedGrad, geometry{vocabulary: d.in[1].Shape()[0]}, d.in[0], d.grad)
}

func productDerivative(d derivation, grads gorgonia.Nodes) {
	if d.op.wanted[0] {
		grads[0] = d.b.apply(device.LinearGradX, 0, d.grad, d.in[1])
	}
	if d.op.wanted[1] {
		grads[1] = d.b.apply(device.ProductGradW, 0, d.in[0], d.grad)
	}
}

// layerNormDerivative uses the statistics of the forward pass, its outputs 1 and 2.
func layerNormDerivative(d derivation, grads gorgonia.Nodes) {
	mean, rstd := d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.LayerNormGrad, 0, d.in[0], d.grad, d.in[1], mean, rstd)
	grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2)
}

func layerNormPlainDerivative(d derivation, grads gorgonia.Nodes) {
	mean, rstd := d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.LayerNormPlainGrad, 0, d.in[0], d.grad, d.in[1], mean, rstd)
	grads[1] = d.b.project(grads[0], 1)
}

func rmsNormDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.b.apply(device.RMSNormGrad, 0, d.in[0], d.grad, d.in[1], d.b.project(d.out, 1))
	grads[1] = d.b.project(grads[0], 1)
}

// ofInput is the derivative of a function of one input: a kernel of that and the gradient.
func ofInput(k device.Kernel) func(derivation, gorgonia.Nodes) {
	return func(d derivation, grads gorgonia.Nodes) { grads[0] = d.b.apply(k, 0, d.in[0], d.grad) }
}

func ropeDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.b.applyAs(device.RoPEGrad, d.op.geometry, d.op.attr, d.grad)
}

func attentionDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.b.applyWindow(device.AttentionGrad, d.op.geometry, d.in[0], d.out, d.b.project(d.out, 1), d.grad)
}
