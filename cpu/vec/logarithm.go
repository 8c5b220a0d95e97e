package vec

import "math"

// logOf returns the natural logarithm of x, a normal positive number or NaN, with a relative error
// of at most 2^-33 even near 1. The library's logarithm differs in the last bits between machines;
// here each product is rounded separately, and all get the same.
//
// x = 2^k·m with m from √½ to √2, and log m = 2·artanh s for s = (m-1)/(m+1): |s| < 0.172, so that
// six terms of the series are sufficient.
func logOf(x float64) float64 {
	if x != x {
		return x
	}
	const half = 0x3fe6a09e667f3bcd // the bits of √½
	bits := math.Float64bits(x)
	k := int64(bits-half) >> 52
	m := math.Float64frombits(bits - uint64(k)<<52)
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := 1.0/11 + float64(z*(1.0/13))
	p = 1.0/9 + float64(z*p)
	p = 1.0/7 + float64(z*p)
	p = 1.0/5 + float64(z*p)
	p = 1.0/3 + float64(z*p)
	s2 := 2 * s
	return float64(float64(k)*ln2) + (s2 + float64(s2*float64(z*p)))
}
