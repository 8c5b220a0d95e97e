package vec

import (
	"math"

	"fspda/cpu/kernel"
)

// sigmoid: y = 1/(1+exp(-x)).
var sigmoid = inParts(func(o *kernel.Args, from, to int) {
	Sigmoids(o.Out[0][from:to], o.In[0][from:to])
})

// sigmoidGrad: dx = dy·y·(1-y).
var sigmoidGrad = inParts(func(o *kernel.Args, from, to int) {
	SigmoidGrads(o.Out[0][from:to], o.In[0][from:to], o.In[1][from:to], nonTemporal(o.Out[0], o.In[0], o.In[1]))
})

// relu: y = max(x, 0). NaN stays NaN.
var relu = inParts(func(o *kernel.Args, from, to int) {
	ReLUs(o.Out[0][from:to], o.In[0][from:to], nonTemporal(o.Out[0], o.In[0]))
})

// reluGrad: dx = dy if y > 0, else 0.
var reluGrad = inParts(func(o *kernel.Args, from, to int) {
	ReLUGrads(o.Out[0][from:to], o.In[0][from:to], o.In[1][from:to], nonTemporal(o.Out[0], o.In[0], o.In[1]))
})

// sigmoidsGo writes 1/(1+exp(-x)) to dst, computed in float64. In float64 the exponential of any
// float32 argument that matters is finite, so this form needs no second one for large |x|.
func sigmoidsGo(dst, x []float32) {
	var buffer [expBlock]float64
	for len(x) > 0 {
		e := buffer[:min(expBlock, len(x))]
		for i, v := range x[:len(e)] {
			e[i] = -float64(v)
		}
		exps(e)
		d := dst[:len(e)]
		for i, v := range e {
			d[i] = float32(1 / (1 + v))
		}
		x, dst = x[len(e):], dst[len(e):]
	}
}

// swishesGo is Swishes.
func swishesGo(dst, x, v []float32) {
	x, v = x[:len(dst)], v[:len(dst)]
	for i, e := range x {
		dst[i] = v[i] * e
	}
	sigmoidsGo(dst, dst)
	for i, s := range dst {
		dst[i] = x[i] * s
	}
}

// swishGradsGo is SwishGrads. With e = exp(−t), w is (e·s)·s.
func swishGradsGo(y, dv, dx, x, v, dy []float32) {
	var buffer [expBlock]float64
	for len(y) > 0 {
		e := buffer[:min(expBlock, len(y))]
		for i, a := range x[:len(e)] {
			e[i] = -float64(v[i] * a)
		}
		exps(e)
		for i, a := range x[:len(e)] {
			inverse := 1 / (1 + e[i])
			s, w := float32(inverse), float32(float64(e[i]*inverse)*inverse)
			y[i], dv[i] = a*s, a*float32(a*w)
			dx[i] = dy[i] * (s + float32(float32(v[i]*a)*w))
		}
		y, dv, dx, x, v, dy = y[len(e):], dv[len(e):], dx[len(e):], x[len(e):], v[len(e):], dy[len(e):]
	}
}

// sigmoidGradsGo writes dy·y·(1-y) to dst, the product and the difference rounded to float32 before
// they are multiplied.
func sigmoidGradsGo(dst, y, dy []float32) {
	dy, dst = dy[:len(y)], dst[:len(y)]
	for i, v := range y {
		dst[i] = float32(float32(dy[i]*v) * (1 - v))
	}
}

// relusGo writes max(x, 0) to dst. A comparison with NaN is false, so NaN passes through; -0
// becomes 0. It selects on the bits, as integers: the compiler then needs no branch, which would be
// mispredicted half of the time for random signs.
func relusGo(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		b := math.Float32bits(v)
		if v <= 0 {
			b = 0
		}
		dst[i] = math.Float32frombits(b)
	}
}

// reluGradsGo writes dy if y > 0, else 0, to dst.
func reluGradsGo(dst, y, dy []float32) {
	dy, dst = dy[:len(y)], dst[:len(y)]
	for i, v := range y {
		b := uint32(0)
		if g := math.Float32bits(dy[i]); v > 0 {
			b = g
		}
		dst[i] = math.Float32frombits(b)
	}
}
