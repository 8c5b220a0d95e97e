package vec

import (
	"math"

	"fspda/device"
)

// adamWRange computes a part of an AdamW.
func adamWRange(op *device.Op, from, to int) {
	a := &op.Adam
	coefficients := adam{float32(a.Beta1), float32(a.Rest1), float32(a.Beta2), float32(a.Rest2), float32(a.Scale1),
		float32(a.Scale2), float32(a.Eps), float32(a.Decay), float32(a.Most())}
	adamW(&coefficients, numbers(op.Out[0])[from:to], numbers(op.Out[1])[from:to], numbers(op.Out[2])[from:to],
		numbers(op.In[0])[from:to])
}

// adam holds the coefficients of device.Adam, in its order.
type adam struct{ beta1, rest1, beta2, rest2, scale1, scale2, eps, decay, most float32 }

// adamWGo moves the averages m and v and writes the direction to g. The root of a float32 in
// float64, rounded to float32, is the correctly rounded root.
func adamWGo(a *adam, g, m, v, x []float32) {
	m, v, x = m[:len(g)], v[:len(g)], x[:len(g)]
	for i, grad := range g {
		first := float32(a.beta1*m[i]) + float32(a.rest1*grad)
		second := float32(a.beta2*v[i]) + float32(a.rest2*float32(grad*grad))
		if second > a.most { // false for NaN
			second = a.most
		}
		m[i], v[i] = first, second
		root := float32(a.scale2*float32(math.Sqrt(float64(second)))) + a.eps
		g[i] = float32(float32(a.scale1*first)/root) + float32(a.decay*x[i])
	}
}
