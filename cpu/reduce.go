package cpu

import "fspda/device"

// Dot returns Σ a[k]·b[k] in float64. The order of additions is fixed, and a product of two float32 is exact in float64, so
// the result has the same bits on every machine. It panics if the lengths differ.
func (*Device) Dot(a, b device.Vector) float64 {
	x, y := data("Dot", a), data("Dot", b)
	checkLen("Dot", "b", len(y), len(x))
	return dot(x, y)
}

// dot adds in four partial sums, element k to sum k mod 4, so that the additions do not wait for each other.
func dot(x, y []float32) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		x4, y4 := (*[4]float32)(x), (*[4]float32)(y)
		s0 += float64(x4[0]) * float64(y4[0])
		s1 += float64(x4[1]) * float64(y4[1])
		s2 += float64(x4[2]) * float64(y4[2])
		s3 += float64(x4[3]) * float64(y4[3])
		x, y = x[4:], y[4:]
	}
	for k, v := range x {
		s0 += float64(v) * float64(y[k])
	}
	return s0 + s1 + (s2 + s3)
}
