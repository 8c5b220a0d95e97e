package onnx

import (
	"math"

	"fspda/device"
	"fspda/model"
)

// language maps the kernels of language models to operators. Values have the shape batch × tokens ×
// numbers. Opset 17 has neither Gelu nor RMSNormalization, so that those are composed.
var language = map[device.Kernel]func(g *graph, o model.Operation){
	device.Embed: func(g *graph, o model.Operation) { // Dims m v c p T
		in := g.inputs(o)
		positions := in[2]
		if p, t := o.Dims[3], o.Dims[4]; t < p {
			ends := [][]int64{{0}, {int64(t)}, {0}} // starts, ends, axes
			slice := []string{positions}
			for _, v := range ends {
				slice = append(slice, g.ints(o.Layer, v...))
			}
			positions = g.add(o.Layer, "Slice", slice)
		}
		tokens := g.add(o.Layer, "Gather", []string{in[1], in[0]})
		g.add(o.Layer, "Add", []string{tokens, positions})
	},
	device.TokenEmbed: func(g *graph, o model.Operation) {
		in := g.inputs(o)
		g.add(o.Layer, "Gather", []string{in[1], in[0]})
	},
	device.Product: func(g *graph, o model.Operation) { g.product(o) },
	device.LayerNorm: func(g *graph, o model.Operation) {
		g.add(o.Layer, "LayerNormalization", g.inputs(o), attribute{"epsilon", float32(o.Attr)})
	},
	device.LayerNormPlain: func(g *graph, o model.Operation) {
		g.add(o.Layer, "LayerNormalization", g.inputs(o), attribute{"epsilon", float32(o.Attr)})
	},
	device.RMSNorm: func(g *graph, o model.Operation) {
		in := g.inputs(o)
		square := g.add(o.Layer, "Mul", []string{in[0], in[0]})
		mean := g.add(o.Layer, "ReduceMean", []string{square}, attribute{"axes", []int64{-1}})
		mean = g.add(o.Layer, "Add", []string{mean, g.float(o.Layer, o.Attr)})
		root := g.add(o.Layer, "Sqrt", []string{mean})
		g.add(o.Layer, "Mul", []string{g.add(o.Layer, "Div", []string{in[0], root}), in[1]})
	},
	device.GELUTanh:  func(g *graph, o model.Operation) { g.geluTanh(o) },
	device.GELUErf:   func(g *graph, o model.Operation) { g.geluErf(o) },
	device.SwiGLU:    func(g *graph, o model.Operation) { g.swiGLU(o) },
	device.RoPE:      func(g *graph, o model.Operation) { g.rope(o) },
	device.Attention: func(g *graph, o model.Operation) { g.attention(o) },
}

// ints adds a constant of integers, and float one number, and returns its name.
func (g *graph) ints(layer string, v ...int64) string {
	return g.add(layer, "Constant", nil, attribute{"value_ints", v})
}

func (g *graph) float(layer string, v float64) string {
	return g.add(layer, "Constant", nil, attribute{"value_float", float32(v)})
}

// reshape gives a value the shape batch × tokens × axes.
func (g *graph) reshape(layer, x string, axes ...int) string {
	shape := []int64{0, 0} // zeros keep these two axes
	for _, n := range axes {
		shape = append(shape, int64(n))
	}
	return g.add(layer, "Reshape", []string{x, g.ints(layer, shape...)})
}

// take returns part i of an axis, without that axis.
func (g *graph) take(layer, x string, axis, i int) string {
	at := g.add(layer, "Constant", nil, attribute{"value_int", i})
	return g.add(layer, "Gather", []string{x, at}, attribute{"axis", axis})
}

// product adds x·Wᵀ, and a bias if there is one.
func (g *graph) product(o model.Operation) {
	in := g.inputs(o)
	turned := g.add(o.Layer, "Transpose", in[1:2], attribute{"perm", []int64{1, 0}})
	y := g.add(o.Layer, "MatMul", []string{in[0], turned})
	if len(in) > 2 {
		g.add(o.Layer, "Add", []string{y, in[2]})
	}
}

// geluTanh adds x·σ(2·sqrt(2/π)·(x + 0.044715·x³)).
func (g *graph) geluTanh(o model.Operation) {
	x, slope := g.inputs(o)[0], 2*math.Sqrt(2/math.Pi)
	square := g.add(o.Layer, "Mul", []string{x, x})
	third := g.add(o.Layer, "Mul", []string{square, g.float(o.Layer, 0.044715*slope)})
	sum := g.add(o.Layer, "Add", []string{third, g.float(o.Layer, slope)})
	share := g.add(o.Layer, "Sigmoid", []string{g.add(o.Layer, "Mul", []string{sum, x})})
	g.add(o.Layer, "Mul", []string{share, x})
}

// geluErf adds x·(1 + erf(x/√2))/2.
func (g *graph) geluErf(o model.Operation) {
	x := g.inputs(o)[0]
	scaled := g.add(o.Layer, "Mul", []string{x, g.float(o.Layer, math.Sqrt2/2)})
	sum := g.add(o.Layer, "Add", []string{g.add(o.Layer, "Erf", []string{scaled}), g.float(o.Layer, 1)})
	half := g.add(o.Layer, "Mul", []string{x, g.float(o.Layer, 0.5)})
	g.add(o.Layer, "Mul", []string{half, sum})
}

// swiGLU adds g·σ(g)·u.
func (g *graph) swiGLU(o model.Operation) {
	both := g.reshape(o.Layer, g.inputs(o)[0], 2, o.Dims[1])
	gate, up := g.take(o.Layer, both, 2, 0), g.take(o.Layer, both, 2, 1)
	share := g.add(o.Layer, "Sigmoid", []string{gate})
	g.add(o.Layer, "Mul", []string{g.add(o.Layer, "Mul", []string{gate, share}), up})
}

// rope turns the pairs j and j+h/2 of queries and keys. For the values the angle is zero.
func (g *graph) rope(o model.Operation) { // Dims B T H h, Attr θ
	tokens, heads, pairs := o.Dims[1], o.Dims[2], o.Dims[3]/2
	var cos, sin []float32
	for t := range tokens {
		for part := range 3 {
			for j := range pairs {
				angle := 0.0
				if part < 2 {
					angle = float64(t) * math.Pow(o.Attr, -float64(j)/float64(pairs))
				}
				s, c := math.Sincos(angle)
				cos, sin = append(cos, float32(c)), append(sin, float32(s))
			}
		}
	}
	table := func(v []float32) string {
		flat := g.add(o.Layer, "Constant", nil, attribute{"value_floats", v})
		shape := g.ints(o.Layer, int64(tokens), 3, 1, int64(pairs))
		return g.add(o.Layer, "Reshape", []string{flat, shape})
	}
	c, s := table(cos), table(sin)
	split := g.reshape(o.Layer, g.inputs(o)[0], 3, heads, 2, pairs)
	a, b := g.take(o.Layer, split, 4, 0), g.take(o.Layer, split, 4, 1)
	times := func(x, y string) string { return g.add(o.Layer, "Mul", []string{x, y}) }
	first := g.add(o.Layer, "Sub", []string{times(a, c), times(b, s)})
	second := g.add(o.Layer, "Add", []string{times(b, c), times(a, s)})
	turned := g.add(o.Layer, "Concat", []string{first, second}, attribute{"axis", -1})
	g.reshape(o.Layer, turned, 6*heads*pairs)
}

// attention adds the softmax over the tokens up to each one of q·kᵀ/√h, times v.
func (g *graph) attention(o model.Operation) { // Dims B T H h
	tokens, heads, width := o.Dims[1], o.Dims[2], o.Dims[3]
	qkv := g.reshape(o.Layer, g.inputs(o)[0], 3, heads, width)
	part := func(i int, order ...int64) string {
		return g.add(o.Layer, "Transpose", []string{g.take(o.Layer, qkv, 2, i)}, attribute{"perm", order})
	}
	q, k, v := part(0, 0, 2, 1, 3), part(1, 0, 2, 3, 1), part(2, 0, 2, 1, 3)
	k = g.add(o.Layer, "Mul", []string{k, g.float(o.Layer, 1/math.Sqrt(float64(width)))})
	scores := g.add(o.Layer, "MatMul", []string{q, k})
	scores = g.add(o.Layer, "Add", []string{scores, g.later(tokens)})
	shares := g.add(o.Layer, "Softmax", []string{scores}, attribute{"axis", -1})
	y := g.add(o.Layer, "MatMul", []string{shares, v})
	y = g.add(o.Layer, "Transpose", []string{y}, attribute{"perm", []int64{0, 2, 1, 3}})
	g.reshape(o.Layer, y, heads*width)
}

// later returns a matrix with −∞ above its diagonal and 0 elsewhere, which all layers share.
func (g *graph) later(tokens int) string {
	const layer = "mask"
	if g.mask == "" {
		shape := g.ints(layer, int64(tokens), int64(tokens))
		all := g.add(layer, "Expand", []string{g.float(layer, math.Inf(-1)), shape})
		next := g.add(layer, "Constant", nil, attribute{"value_int", 1})
		g.mask = g.add(layer, "Trilu", []string{all, next}, attribute{"upper", 1})
	}
	return g.mask
}
