package vec

import "math"

// Powers of two and reciprocals for GELU, in float64 with fused multiply-adds, which round once in
// assembly and in Go. For r from -1/2 to 1/2 a polynomial of degree 6 has a relative error below
// 2^-29 of 2^r. Beyond the bound both sides are out of the range of float32.
const (
	powerBound = 216
	power0     = 1.0000000005541663
	power1     = 0.6931472057372526
	power2     = 0.24022646890639573
	power3     = 0.055503287769976636
	power4     = 0.009618488956522791
	power5     = 0.001339993120947414
	power6     = 0.00015345812158740183
)

// powers replaces each x of v by 2^x, with x clamped to ±216. NaN stays NaN.
func powers(v []float64) {
	for i, x := range v {
		if x > powerBound {
			x = powerBound
		} else if x < -powerBound {
			x = -powerBound
		}
		t := x + expShift // its low bits are the nearest integer n
		r := x - (t - expShift)
		r2 := float64(r * r)
		p01, p23, p45 := math.FMA(power1, r, power0), math.FMA(power3, r, power2), math.FMA(power5, r, power4)
		p := math.FMA(math.FMA(math.FMA(power6, r2, p45), r2, p23), r2, p01)
		v[i] = math.Float64frombits(math.Float64bits(p) + math.Float64bits(t)<<52) // adds n to the exponent
	}
}

// reciprocal returns 1/d for d of at least 1: the quotient in float32, which takes a third of the
// time of one in float64, and a Newton step. It is 0 for d beyond the range of float32.
func reciprocal(d float64) float64 {
	s := float64(1 / float32(d))
	return math.FMA(math.FMA(-d, s, 1), s, s)
}
