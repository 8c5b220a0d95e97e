package vec

import (
	"math"

	"fspda/cpu/tile"
)

// The exponential in float32: d·log₂e = n + r with an integer n and |r| <= 1/2, where fused
// multiply-adds lose no digit of d·log₂e, and 2^r = 1 + r·q(r), q a polynomial of degree 5. It is
// off by 3e-9 of 2^r before rounding.
const (
	floatLog2e    = 0x1.715476p0  // log₂e in float32,
	floatLog2eLow = 0x1.4ae0cp-26 // and the rest of it
	// adding it leaves n plus the bias of the exponent in the low bits
	powerShift = 0x1.8p23 + 127
	powerLow   = -88.03  // beyond these bounds 2^n is 0
	powerHigh  = 88.7228 // or infinite
)

// powerTerms are the coefficients of q, the constant first.
var powerTerms = [6]float32{0.6931472, 0.24022648, 0.055503596, 0.009618499, 0.0013390969, 0.00015329264}

// floatExp returns e^d within 1.5 ulp. NaN stays NaN.
func floatExp(d float32) float32 {
	if d < powerLow {
		d = powerLow
	} else if d > powerHigh {
		d = powerHigh
	}
	v := float64(d)
	t := float32(tile.FMA(v, floatLog2e, powerShift))
	r := tile.FMA(v, floatLog2e, -float64(t-powerShift))
	r = tile.FMA(v, floatLog2eLow, r)
	square := float64(float32(r * r))
	pair := func(k int) float64 { return tile.FMA(float64(powerTerms[k+1]), r, float64(powerTerms[k])) }
	q := tile.FMA(tile.FMA(pair(4), square, pair(2)), square, pair(0))
	return float32(tile.FMA(q, r, 1)) * math.Float32frombits(math.Float32bits(t)<<23)
}

func scaleRowsGo(dst, x, scales []float32, n, stride int) {
	for r, s := range scales {
		row := dst[r*stride:][:n]
		for j, v := range x[r*n:][:n] {
			row[j] = v * s
		}
	}
}

func floatExpRowsGo(dst []float32, sums []float64, x, tops []float32, n int) {
	for r, top := range tops[:len(sums)] {
		var partial [rowSums]float32
		for j, v := range x[r*n : (r+1)*n] {
			e := floatExp(v - top)
			dst[r*n+j] = e
			partial[j%rowSums] += e
		}
		var s [rowSums]float64
		for k, v := range partial {
			s[k] = float64(v)
		}
		sums[r] = tree(s[:])
	}
}
