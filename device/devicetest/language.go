package devicetest

import (
	"math"
	"slices"

	"fspda/device"
	"fspda/internal/rng"
)

// language describes a kernel of language models, or one that normalizes groups of channels, to the
// contract: its definition in float64, the calls to try, conditions of its inputs, and its bounds.
type language struct {
	interpret interpreter
	calls     func(add func(attr float64, dims ...int))
	inputs    func(c *device.Call, in [][]float32) // nil: any numbers
	bounds    func(c *device.Call, in, want, b [][]float64)
}

var languageKernels = map[device.Kernel]language{}

func init() { // init breaks the initialization cycle of the table
	maps := []map[device.Kernel]language{embedKernels, productKernels, rowKernels, geluKernels, attentionKernels,
		groupKernels, biasKernels, dropoutKernels}
	for _, m := range maps {
		for k, l := range m {
			languageKernels[k], interpreters[k] = l, l.interpret
		}
	}
}

// relativeBounds allows a number of roundings of each element of each output.
func relativeBounds(units float64) func(c *device.Call, in, want, b [][]float64) {
	return func(_ *device.Call, _, want, b [][]float64) {
		for i := range want {
			for j, w := range want[i] {
				b[i][j] = units*unit*math.Abs(w) + smallest
			}
		}
	}
}

// tokenInputs makes the first input tokens.
func tokenInputs(c *device.Call, in [][]float32) {
	s := rng.New(6, string(c.Kernel))
	replace(in[0], func(float32) float32 { return float32(s.IntN(c.Dims[1])) })
}

var embedKernels = map[device.Kernel]language{
	device.Embed:             {interpretEmbed, embedCalls, tokenInputs, relativeBounds(1)},
	device.TokenEmbed:        {interpretEmbed, tokenEmbedCalls, tokenInputs, relativeBounds(0)},
	device.EmbedGrad:         {interpretEmbedGrad, embedCalls, tokenInputs, embedGradBounds},
	device.EmbedGradAdd:      {interpretEmbedGrad, embedCalls, tokenInputs, embedGradBounds},
	device.TokenEmbedGrad:    {interpretEmbedGrad, tokenEmbedCalls, tokenInputs, embedGradBounds},
	device.TokenEmbedGradAdd: {interpretEmbedGrad, tokenEmbedCalls, tokenInputs, embedGradBounds},
	device.LastToken: {func(c *device.Call, in, out [][]float64) {
		t, n := c.Dims[1], c.Dims[2]
		for i := range out[0] {
			out[0][i] = in[0][(i/n*t+t-1)*n+i%n]
		}
	}, func(add func(attr float64, dims ...int)) {
		add(0, 1, 1, 1)
		add(0, 3, 5, 17)
		add(0, 2, 8, 40)
	}, nil, relativeBounds(0)},
	device.EmbedStep: {interpretEmbedStep, func(add func(attr float64, dims ...int)) {
		add(0, 1, 1, 1, 1)
		add(0, 1, 6, 3, 5)
		add(0, 7, 65, 130, 40)
	}, func(c *device.Call, in [][]float32) { tokenInputs(c, in); positionInput(c, in) }, relativeBounds(1)},
}

func embedCalls(add func(attr float64, dims ...int)) {
	add(0, 1, 1, 1, 1, 1)
	add(0, 12, 6, 3, 5, 4)
	add(0, 24, 2, 17, 8, 8)
	add(0, 60, 65, 130, 40, 30)
}

func tokenEmbedCalls(add func(attr float64, dims ...int)) {
	add(0, 1, 1, 1)
	add(0, 12, 6, 3)
	add(0, 60, 65, 130)
}

func interpretEmbed(c *device.Call, in, out [][]float64) {
	n := c.Dims[2]
	for i := range out[0] {
		r := i / n
		out[0][i] = in[1][class(in[0][r], c.Dims[1])*n+i%n]
		if len(in) > 2 {
			out[0][i] += in[2][r%c.Dims[4]*n+i%n]
		}
	}
}

func interpretEmbedGrad(c *device.Call, in, out [][]float64) {
	n := c.Dims[2]
	for _, o := range out {
		clear(o)
	}
	for i, v := range in[1] {
		r := i / n
		out[0][class(in[0][r], c.Dims[1])*n+i%n] += v
		if len(out) > 1 {
			out[1][r%c.Dims[4]*n+i%n] += v
		}
	}
	if len(in) > 2 {
		for i, v := range in[2] {
			out[0][i] += v
		}
	}
}

// embedGradBounds allows a rounding of the sum and one after base is added, and the error of sums
// in float64.
func embedGradBounds(c *device.Call, in, _, b [][]float64) {
	positive := slices.Clone(in)
	for i := 1; i < len(in); i++ {
		positive[i] = absolutes(in[i])
	}
	interpretEmbedGrad(c, positive, b)
	for i := range b {
		for j := range b[i] {
			b[i][j] = 2*unit*b[i][j] + smallest
		}
	}
}

func absolutes(v []float64) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = math.Abs(x)
	}
	return w
}

var productKernels = map[device.Kernel]language{
	device.Product: {func(c *device.Call, in, out [][]float64) {
		with := &device.Call{Kernel: device.Linear, Dims: c.Dims}
		Interpret(with, append(slices.Clip(in), make([]float64, c.Dims[1])), out)
	}, productCalls, nil, func(c *device.Call, in, _, b [][]float64) { sumBound(c, in, b, c.Dims[2]) }},
	device.ProductGradW: {func(c *device.Call, in, out [][]float64) {
		with := &device.Call{Kernel: device.LinearGradW, Dims: c.Dims}
		Interpret(with, in, append(slices.Clip(out), make([]float64, c.Dims[1])))
	}, productCalls, nil, func(c *device.Call, in, _, b [][]float64) { sumBound(c, in, b, c.Dims[0]) }},
}

func productCalls(add func(attr float64, dims ...int)) {
	for i, m := range widths {
		add(0, m, widths[(i+3)%len(widths)], widths[(2*i+5)%len(widths)])
	}
	add(0, 96, 65, 128)
	add(0, 70, 130, 12)
}

// rowKernels normalize rows.
var rowKernels = map[device.Kernel]language{
	device.LayerNorm:             {interpretLayerNorm, rowCalls, rowInputs, layerNormBounds},
	device.LayerNormPlain:        {interpretLayerNorm, rowCalls, rowInputs, layerNormBounds},
	device.AddLayerNorm:          {interpretAddLayerNorm, rowCalls, rowInputs, addLayerNormBounds},
	device.AddLayerNormPlain:     {interpretAddLayerNorm, rowCalls, rowInputs, addLayerNormBounds},
	device.LayerNormGrad:         {interpretRowGrad, rowCalls, rowGradInputs, rowGradBounds},
	device.LayerNormPlainGrad:    {interpretRowGrad, rowCalls, rowGradInputs, rowGradBounds},
	device.LayerNormGradAdd:      {interpretRowGrad, rowCalls, rowGradInputs, rowGradBounds},
	device.LayerNormPlainGradAdd: {interpretRowGrad, rowCalls, rowGradInputs, rowGradBounds},
	device.RMSNorm:               {interpretRMSNorm, rowCalls, nil, relativeBounds(8)},
	device.RMSNormGrad:           {interpretRowGrad, rowCalls, rowGradInputs, rowGradBounds},
}

func rowCalls(add func(attr float64, dims ...int)) {
	for i, c := range widths {
		add([]float64{1e-2, 1e-3}[i%2], widths[(3*i+2)%len(widths)], c)
	}
	add(1e-5, 130, 128) // several blocks of sums
	add(1e-5, 3, 530)
}

// rowInputs gives some rows a large mean.
func rowInputs(c *device.Call, in [][]float32) {
	for i := range in[0] {
		if n := c.Dims[1]; n > 2 && i/n%3 == 1 {
			in[0][i] += 30
		}
	}
}

// rowGradInputs computes the statistics from x.
func rowGradInputs(c *device.Call, in [][]float32) {
	if c.Kernel != device.RMSNormGrad {
		rowInputs(c, in)
	}
	setRowStatistics(c, in)
}

// setRowStatistics makes the statistics of a gradient of a normalization of rows agree with x.
func setRowStatistics(c *device.Call, in [][]float32) {
	rows := c.Dims[1]
	if c.Kernel == device.RMSNormGrad {
		for r := range c.Dims[0] {
			in[3][r] = float32(rmsOf(widen(in[0][r*rows:][:rows]), 1e-2))
		}
		return
	}
	for r := range c.Dims[0] {
		mean, rstd := rowStatistics(widen(in[0][r*rows:][:rows]), 1e-2)
		in[3][r], in[4][r] = float32(mean), float32(rstd)
	}
}

func rowStatistics(x []float64, eps float64) (mean, rstd float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	square := 0.0
	for _, v := range x {
		square += (v - mean) * (v - mean) / n
	}
	return mean, 1 / math.Sqrt(square+eps)
}

func rmsOf(x []float64, eps float64) float64 {
	square := 0.0
	for _, v := range x {
		square += v * v / float64(len(x))
	}
	return 1 / math.Sqrt(square+eps)
}

func interpretLayerNorm(c *device.Call, in, out [][]float64) {
	n := c.Dims[1]
	for r := range c.Dims[0] {
		x := in[0][r*n:][:n]
		mean, rstd := rowStatistics(x, c.Attr)
		out[1][r], out[2][r] = mean, rstd
		for j, v := range x {
			out[0][r*n+j] = in[1][j] * (v - mean) * rstd
			if len(in) > 2 {
				out[0][r*n+j] += in[2][j]
			}
		}
	}
}

func interpretAddLayerNorm(c *device.Call, in, out [][]float64) {
	for i, v := range in[0] {
		out[0][i] = v + in[1][i]
	}
	interpretLayerNorm(c, append([][]float64{out[0]}, in[2:]...), out[1:])
}

func interpretRMSNorm(c *device.Call, in, out [][]float64) {
	n := c.Dims[1]
	for r := range c.Dims[0] {
		x := in[0][r*n:][:n]
		out[1][r] = rmsOf(x, c.Attr)
		for j, v := range x {
			out[0][r*n+j] = in[1][j] * v * out[1][r]
		}
	}
}

// layerNormBounds allows the mean to be rounded before it is subtracted.
func layerNormBounds(c *device.Call, in, want, b [][]float64) {
	n := c.Dims[1]
	for i, x := range in[0] {
		r, j := i/n, i%n
		mean, rstd := want[1][r], want[2][r]
		d := math.Abs(x-mean) + unit*(math.Abs(x)+math.Abs(mean))
		b[0][i] = 8*unit*math.Abs(in[1][j])*rstd*d + 4*unit*math.Abs(in[1][j])*rstd*(math.Abs(x)+math.Abs(mean)) +
			4*unit*math.Abs(want[0][i]) + smallest
		if len(in) > 2 {
			b[0][i] += 2 * unit * math.Abs(in[2][j])
		}
		b[1][r] = math.Max(b[1][r], 2*unit*math.Abs(mean)+unit*math.Abs(x)/float64(n))
		b[2][r] = math.Max(b[2][r], 8*unit*rstd)
	}
}

func addLayerNormBounds(c *device.Call, in, want, b [][]float64) {
	rounded := make([]float64, len(want[0]))
	for i, s := range want[0] {
		rounded[i] = float64(float32(s))
		b[0][i] = unit*math.Abs(s) + smallest
	}
	layerNormBounds(c, append([][]float64{rounded}, in[2:]...), want[1:], b[1:])
	n := c.Dims[1]
	for i := range b[1] { // the effect of the rounding of s
		most := 0.0
		for _, s := range want[0][i/n*n:][:n] {
			most = math.Max(most, math.Abs(s))
		}
		rstd := want[3][i/n]
		normal := math.Abs(want[0][i]-want[2][i/n]) * rstd
		b[1][i] += 4 * unit * most * rstd * math.Abs(in[2][i%n]) * (1 + normal)
		b[2][i/n] += 2 * unit * most
		b[3][i/n] = math.Max(b[3][i/n], 8*unit*rstd*(1+most*rstd))
	}
}

type rowGradient struct {
	x, dy, gamma, mean, rstd, add []float64
}

func rowOperands(c *device.Call, in [][]float64) rowGradient {
	g := rowGradient{x: in[0], dy: in[1], gamma: in[2]}
	if c.Kernel == device.RMSNormGrad {
		g.mean, g.rstd = make([]float64, c.Dims[0]), in[3]
		return g
	}
	if g.mean, g.rstd = in[3], in[4]; len(in) > 5 {
		g.add = in[5]
	}
	return g
}

func interpretRowGrad(c *device.Call, in, out [][]float64) {
	n, g := c.Dims[1], rowOperands(c, in)
	for _, o := range out[1:] {
		clear(o)
	}
	for r := range c.Dims[0] {
		a, b := 0.0, 0.0
		normal := func(j int) float64 { return (g.x[r*n+j] - g.mean[r]) * g.rstd[r] }
		for j := range n {
			dy := g.dy[r*n+j]
			a += g.gamma[j] * dy / float64(n)
			b += g.gamma[j] * dy * normal(j) / float64(n)
			out[1][j] += dy * normal(j)
			if len(out) > 2 {
				out[2][j] += dy
			}
		}
		if c.Kernel == device.RMSNormGrad {
			a = 0
		}
		for j := range n {
			out[0][r*n+j] = g.rstd[r] * (g.gamma[j]*g.dy[r*n+j] - a - normal(j)*b)
			if g.add != nil {
				out[0][r*n+j] += g.add[r*n+j]
			}
		}
	}
}

// rowGradBounds allows the exact mean of a row in place of its rounded value.
func rowGradBounds(c *device.Call, in, want, b [][]float64) {
	n, g := c.Dims[1], rowOperands(c, in)
	for r := range c.Dims[0] {
		rstd, most, mean := g.rstd[r], math.Abs(g.mean[r]), 0.0
		for j := range n {
			most = math.Max(most, math.Abs(g.x[r*n+j]))
			mean += math.Abs(g.gamma[j]*g.dy[r*n+j]) / float64(n)
		}
		off := 4 * unit * rstd * most // error of x̂
		across := 0.0                 // the mean of |g·x̂|
		for j := range n {
			across += math.Abs(g.gamma[j]*g.dy[r*n+j]) * (math.Abs(g.x[r*n+j]-g.mean[r])*rstd + off) / float64(n)
		}
		for j := range n {
			i := r*n + j
			normal := math.Abs(g.x[i]-g.mean[r])*rstd + off
			b[0][i] = rstd*(16*unit*(math.Abs(g.gamma[j]*g.dy[i])+mean+normal*across)+off*(across+2*normal*mean)) +
				2*unit*math.Abs(want[0][i]) + smallest
			if g.add != nil {
				b[0][i] += 2 * unit * math.Abs(g.add[i])
			}
			b[1][j] += math.Abs(g.dy[i]) * (8*unit*normal + off)
			if len(b) > 2 {
				b[2][j] += unit * math.Abs(g.dy[i])
			}
		}
	}
}

// geluKernels are GELU, its gradients, SwiGLU, and products followed by GELU.
var geluKernels = map[device.Kernel]language{
	device.GELUTanh: {
		each1(func(_, x float64) float64 { return x * tanhGate(x) }),
		lengthCalls,
		wideInputs,
		geluBounds,
	},
	device.GELUErf: {
		each1(func(_, x float64) float64 { return x * erfGate(x) }),
		lengthCalls,
		wideInputs,
		geluBounds,
	},
	device.GELUTanhGrad:    {each2(tanhSlope), lengthCalls, wideInputs, geluGradBounds},
	device.GELUErfGrad:     {each2(erfSlope), lengthCalls, wideInputs, geluGradBounds},
	device.LinearGELUTanh:  {interpretLinearGELU, productCalls, nil, linearGELUBounds},
	device.LinearGELUErf:   {interpretLinearGELU, productCalls, nil, linearGELUBounds},
	device.ProductGELUTanh: {interpretLinearGELU, productCalls, nil, linearGELUBounds},
	device.ProductGELUErf:  {interpretLinearGELU, productCalls, nil, linearGELUBounds},

	device.LinearGradXGELUTanh: {interpretGradXGELU, productCalls, wideThird, gradXGELUBounds},
	device.LinearGradXGELUErf:  {interpretGradXGELU, productCalls, wideThird, gradXGELUBounds},

	device.SwiGLU: {func(c *device.Call, in, out [][]float64) {
		f := c.Dims[1]
		for i := range out[0] {
			g, u := in[0][i/f*2*f+i%f], in[0][i/f*2*f+f+i%f]
			out[0][i] = g / (1 + math.Exp(-g)) * u
		}
	}, rowCalls, nil, relativeBounds(80)},
	device.SwiGLUGrad: {func(c *device.Call, in, out [][]float64) {
		f := c.Dims[1]
		for i, dy := range in[1] {
			at := i/f*2*f + i%f
			g, u := in[0][at], in[0][at+f]
			s := 1 / (1 + math.Exp(-g))
			out[0][at], out[0][at+f] = dy*u*s*(1+g*(1-s)), dy*g*s
		}
	}, rowCalls, nil, func(c *device.Call, in, want, b [][]float64) {
		relativeBounds(80)(c, in, want, b)
		f := c.Dims[1]
		for i, dy := range in[1] { // 1+g·(1−s) may be a difference
			at := i/f*2*f + i%f
			g, u := in[0][at], in[0][at+f]
			b[0][at] += 16 * unit * math.Abs(dy*u) / (1 + math.Exp(-g)) * (1 + math.Abs(g))
		}
	}},
}

func lengthCalls(add func(attr float64, dims ...int)) {
	for _, n := range append([]int{64, 1000, 4099}, widths...) {
		add(0, n)
	}
}

// wideInputs makes some of the first input large.
func wideInputs(c *device.Call, in [][]float32) {
	s := rng.New(7, string(c.Kernel))
	replace(in[0], func(x float32) float32 { return x * []float32{1, 1, 4, 100}[s.IntN(4)] })
}

// wideThird is wideInputs for the third input.
func wideThird(c *device.Call, in [][]float32) { wideInputs(c, in[2:]) }

const tanhScale = 1.5957691216057307 // 2·sqrt(2/π)

func tanhGate(x float64) float64 { return 1 / (1 + math.Exp(-tanhScale*(x+0.044715*x*x*x))) }

func erfGate(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func tanhSlope(_, x, dy float64) float64 {
	s := tanhGate(x)
	if s == 0 || s == 1 { // far from zero the square below may overflow
		return dy * s
	}
	return dy * (s + x*s*(1-s)*tanhScale*(1+0.134145*x*x))
}

func erfSlope(_, x, dy float64) float64 {
	return dy * (erfGate(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
}

// geluUnits is the relative error of the gate at x, in units: the relative error of
// the argument of an exponential.
func geluUnits(x float64) float64 { return 8 + 8*math.Min(x*x*(1+math.Abs(x)), 400) }

// geluBounds allows 1e-8 for tiny results of large negative numbers, which keep their digits down
// to −5.
func geluBounds(_ *device.Call, in, want, b [][]float64) {
	for i, w := range want[0] {
		b[0][i] = 8*unit*math.Abs(w) + 1e-8
		if x := in[0][i]; x >= -5 {
			b[0][i] = math.Min(geluUnits(x)*unit*math.Abs(w)+smallest, b[0][i])
		}
	}
}

func geluGradBounds(_ *device.Call, in, want, b [][]float64) {
	for i, w := range want[0] {
		b[0][i] = 8*unit*math.Abs(w) + 4*unit*math.Abs(in[1][i]) + smallest
	}
}

// geluParts returns the product of a fused layer as a call, and its GELU or the gradient of that.
func geluParts(k device.Kernel) (matrix, after device.Kernel) {
	switch k {
	case device.LinearGELUTanh:
		return device.Linear, device.GELUTanh
	case device.LinearGELUErf:
		return device.Linear, device.GELUErf
	case device.ProductGELUTanh:
		return device.Product, device.GELUTanh
	case device.ProductGELUErf:
		return device.Product, device.GELUErf
	case device.LinearGradXGELUTanh:
		return device.LinearGradX, device.GELUTanhGrad
	}
	return device.LinearGradX, device.GELUErfGrad
}

func interpretLinearGELU(c *device.Call, in, out [][]float64) {
	matrix, after := geluParts(c.Kernel)
	Interpret(&device.Call{Kernel: matrix, Dims: c.Dims}, in, out[:1])
	Interpret(&device.Call{Kernel: after, Dims: []int{len(out[0])}}, out[:1], out[1:])
}

// linearGELUBounds propagates the bound of the product: the slope of GELU is below 1.13.
func linearGELUBounds(c *device.Call, in, want, b [][]float64) {
	matrix, _ := geluParts(c.Kernel)
	copy(b, bounds(&device.Call{Kernel: matrix, Dims: c.Dims}, in, want[:1]))
	for i, w := range want[1] {
		b[1][i] = 1.13*b[0][i] + 8*unit*math.Abs(w) + 1e-8
	}
}

func interpretGradXGELU(c *device.Call, in, out [][]float64) {
	matrix, after := geluParts(c.Kernel)
	product := make([]float64, len(out[0]))
	Interpret(&device.Call{Kernel: matrix, Dims: c.Dims}, in[:2], [][]float64{product})
	Interpret(&device.Call{Kernel: after, Dims: []int{len(product)}}, [][]float64{in[2], product}, out)
}

func gradXGELUBounds(c *device.Call, in, want, b [][]float64) {
	matrix, _ := geluParts(c.Kernel)
	product := [][]float64{make([]float64, len(want[0]))}
	Interpret(&device.Call{Kernel: matrix, Dims: c.Dims}, in[:2], product)
	copy(b, bounds(&device.Call{Kernel: matrix, Dims: c.Dims}, in[:2], product))
	for i, w := range want[0] {
		b[0][i] = 1.13*b[0][i] + 8*unit*math.Abs(w) + 4*unit*math.Abs(product[0][i])
	}
}
