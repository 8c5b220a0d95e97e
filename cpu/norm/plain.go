package norm

import "math"

// plainLoops is the definition of the loops in Go, and runs where there is no assembly. The
// assembly is bit-identical.
var plainLoops = loops{
	moments: momentsGo,
	sums:    sumsGo,
	fold:    foldGo,
	fence:   func() {},
	affine: [2][3]affineLoop{
		{affineGo, affineReLUGo, affineAddReLUGo},
		{affineGo, affineReLUGo, affineAddReLUGo},
	},
	gradSums: [2][3]gradSumsLoop{
		{gradSumsGo, gradSumsReLUGo, gradSumsAddReLUGo},
		{gradSumsGo, gradSumsReLUGo, gradSumsAddReLUGo},
	},
	gradient: [2][2]gradientLoop{
		{gradientGo, gradientReLUGo},
		{gradientGo, gradientReLUGo},
	},
	maxPool:     maxPoolGo,
	maxPoolGrad: [2]func(p windows, dy, at, dx []float32){maxPoolGradGo, maxPoolGradGo},
}

func momentsGo(s span, x, shift []float32, s1, s2 []float64) {
	shift, s1, s2 = shift[:s.cols], s1[:s.cols], s2[:s.cols]
	for i := range s.rows {
		for j, v := range x[i*s.stride:][:s.cols] {
			d := float64(v) - float64(shift[j])
			s1[j] += d
			s2[j] = math.FMA(d, d, s2[j])
		}
	}
}

func sumsGo(s span, x []float32, s1 []float64) {
	s1 = s1[:s.cols]
	for i := range s.rows {
		for j, v := range x[i*s.stride:][:s.cols] {
			s1[j] += float64(v)
		}
	}
}

func foldGo(total, part []float64) {
	part = part[:len(total)]
	for j, v := range part {
		total[j] += v
		part[j] = 0
	}
}

// affineOf applies the affine map to one number.
func affineOf(x, mean, scale, shift float32) float32 { return float32((x-mean)*scale) + shift }

// reluOf returns v, or 0 if v <= 0; a NaN stays. It selects on the bits, as relu does.
func reluOf(v float32) float32 {
	b := math.Float32bits(v)
	if v <= 0 {
		b = 0
	}
	return math.Float32frombits(b)
}

// maskedByReLU returns v if y > 0, else 0.
func maskedByReLU(y, v float32) float32 {
	b := uint32(0)
	if g := math.Float32bits(v); y > 0 {
		b = g
	}
	return math.Float32frombits(b)
}

func affineGo(s span, x, _, y, mean, scale, shift []float32) {
	mean, scale, shift = mean[:s.cols], scale[:s.cols], shift[:s.cols]
	for i := range s.rows {
		out := y[i*s.stride:][:s.cols]
		for j, v := range x[i*s.stride:][:s.cols] {
			out[j] = affineOf(v, mean[j], scale[j], shift[j])
		}
	}
}

func affineReLUGo(s span, x, _, y, mean, scale, shift []float32) {
	mean, scale, shift = mean[:s.cols], scale[:s.cols], shift[:s.cols]
	for i := range s.rows {
		out := y[i*s.stride:][:s.cols]
		for j, v := range x[i*s.stride:][:s.cols] {
			out[j] = reluOf(affineOf(v, mean[j], scale[j], shift[j]))
		}
	}
}

func affineAddReLUGo(s span, x, z, y, mean, scale, shift []float32) {
	mean, scale, shift = mean[:s.cols], scale[:s.cols], shift[:s.cols]
	for i := range s.rows {
		out, add := y[i*s.stride:][:s.cols], z[i*s.stride:][:s.cols]
		for j, v := range x[i*s.stride:][:s.cols] {
			out[j] = reluOf(affineOf(v, mean[j], scale[j], shift[j]) + add[j])
		}
	}
}

func gradSumsGo(s span, x, dy, _, _, mean []float32, s1, s2 []float64) {
	mean, s1, s2 = mean[:s.cols], s1[:s.cols], s2[:s.cols]
	for i := range s.rows {
		g := dy[i*s.stride:][:s.cols]
		for j, v := range x[i*s.stride:][:s.cols] {
			s1[j] += float64(g[j])
			s2[j] = math.FMA(float64(g[j]), float64(v)-float64(mean[j]), s2[j])
		}
	}
}

func gradSumsReLUGo(s span, x, dy, y, _, mean []float32, s1, s2 []float64) {
	mean, s1, s2 = mean[:s.cols], s1[:s.cols], s2[:s.cols]
	for i := range s.rows {
		g, out := dy[i*s.stride:][:s.cols], y[i*s.stride:][:s.cols]
		for j, v := range x[i*s.stride:][:s.cols] {
			kept := float64(maskedByReLU(out[j], g[j]))
			s1[j] += kept
			s2[j] = math.FMA(kept, float64(v)-float64(mean[j]), s2[j])
		}
	}
}

func gradSumsAddReLUGo(s span, x, dy, y, dz, mean []float32, s1, s2 []float64) {
	for i := range s.rows {
		g, out, kept := dy[i*s.stride:][:s.cols], y[i*s.stride:][:s.cols], dz[i*s.stride:][:s.cols]
		for j := range kept {
			kept[j] = maskedByReLU(out[j], g[j])
		}
	}
	gradSumsGo(s, x, dz, nil, nil, mean, s1, s2)
}

// gradientOf returns dx of one number.
func gradientOf(x, g, mean, a, b, e float32) float32 { return float32(a*g) + (float32((x-mean)*b) + e) }

func gradientGo(s span, x, dy, _, dx, mean, a, b, e []float32) {
	mean, a, b, e = mean[:s.cols], a[:s.cols], b[:s.cols], e[:s.cols]
	for i := range s.rows {
		g, out := dy[i*s.stride:][:s.cols], dx[i*s.stride:][:s.cols]
		for j, v := range x[i*s.stride:][:s.cols] {
			out[j] = gradientOf(v, g[j], mean[j], a[j], b[j], e[j])
		}
	}
}

func gradientReLUGo(s span, x, dy, y, dx, mean, a, b, e []float32) {
	mean, a, b, e = mean[:s.cols], a[:s.cols], b[:s.cols], e[:s.cols]
	for i := range s.rows {
		g, fwd, out := dy[i*s.stride:][:s.cols], y[i*s.stride:][:s.cols], dx[i*s.stride:][:s.cols]
		for j, v := range x[i*s.stride:][:s.cols] {
			out[j] = gradientOf(v, maskedByReLU(fwd[j], g[j]), mean[j], a[j], b[j], e[j])
		}
	}
}
