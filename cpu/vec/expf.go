package vec

import "math"

// The exponential is computed in float64 from float32: seven terms of the Taylor series after range
// reduction have a relative error below 2^-27, so that rounding to float32 gives the nearest or,
// rarely, the next number (0.6 ulp), and the last conversion handles overflow, underflow and
// denormals. Each product is rounded explicitly, since some architectures would otherwise fuse it
// with the addition that follows: all machines get the same bits.
const (
	expBound = 150      // e^±150 exceeds the range of float32 on both sides, and is far within the range of float64
	expShift = 0x1.8p52 // adding it leaves the nearest integer in the low bits
	log2e    = 0x1.71547652b82fep0
	ln2      = 0x1.62e42fefa39efp-1

	expC2 = 1.0 / 2
	expC3 = 1.0 / 6
	expC4 = 1.0 / 24
	expC5 = 1.0 / 120
	expC6 = 1.0 / 720
	expC7 = 1.0 / 5040
)

// expBlock is how many exponentials the kernels compute at a time, in a buffer on their stack.
const expBlock = 128

// expf returns e^x within 0.6 ulp. It returns +Inf above 88.73 and 0 below -103.98; NaN stays NaN.
func expf(x float32) float32 {
	v := [1]float64{float64(x)}
	exps(v[:])
	return float32(v[0])
}

// exps replaces each x of v by e^x with a relative error below 2^-27, with x clamped to ±150. NaN
// stays NaN. It is a loop over a buffer of float64, and not a function of one number: on amd64 a
// conversion from float32 depends on the last value of its target register, and would chain each
// exponential to the one before.
func exps(v []float64) {
	for i, x := range v {
		if x > expBound {
			x = expBound
		} else if x < -expBound {
			x = -expBound
		}
		// x = n·ln 2 + r with |r| <= ln 2 / 2.
		t := float64(x*log2e) + expShift
		r := x - float64((t-expShift)*ln2)
		// Estrin's scheme: the pairs do not depend on each other.
		r2 := float64(r * r)
		p01 := 1 + r
		p23 := expC2 + float64(expC3*r)
		p45 := expC4 + float64(expC5*r)
		p67 := expC6 + float64(expC7*r)
		low := p01 + float64(p23*r2)
		high := p45 + float64(p67*r2)
		p := low + float64(high*float64(r2*r2))
		// 2^n by its exponent bits: the low bits of t are n.
		v[i] = p * math.Float64frombits(math.Float64bits(t)<<52+1023<<52)
	}
}
