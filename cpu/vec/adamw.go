package vec

import (
	"math"

	"fspda/device"
)

// AdamW implements device.Device.AdamW in one pass, unless a combination has too many terms. It
// panics if the lengths differ.
func (Ops) AdamW(a device.Adam, g, m, v, x device.Vector, then ...device.Combination) {
	AdamWRange(a, g, m, v, x, then, 0, g.Len())
}

// AdamWRange is AdamW for the coordinates from, ..., to-1. It panics if the lengths differ.
func AdamWRange(a device.Adam, g, m, v, x device.Vector, then []device.Combination, from, to int) {
	d, first, second, at := Data("AdamW", g), Data("AdamW", m), Data("AdamW", v), Data("AdamW", x)
	CheckLen("AdamW", "m", len(first), len(d))
	CheckLen("AdamW", "v", len(second), len(d))
	CheckLen("AdamW", "x", len(at), len(d))
	coefficients := adam{float32(a.Beta1), float32(a.Rest1), float32(a.Beta2), float32(a.Rest2), float32(a.Scale1),
		float32(a.Scale2), float32(a.Eps), float32(a.Decay), float32(a.Most())}
	step := func(i, end int) { adamW(&coefficients, d[i:end], first[i:end], second[i:end], at[i:end]) }
	fused := inOnePass("AdamW", len(d), then)
	if len(then) == 0 || !fused {
		step(from, to)
		for _, c := range then {
			CombineRange(c.Dst, from, to, c.Terms...)
		}
		return
	}
	for i := from; i < to; i += fuseBlock {
		end := min(i+fuseBlock, to)
		step(i, end)
		combineParts(then, i, end)
	}
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
