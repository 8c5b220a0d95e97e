package tile

import "math"

// FMA returns a·b + s rounded once to float32, for float32 numbers held in float64: the result of a
// fused multiply-add instruction, on any processor.
//
// The product is exact in float64. The sum is rounded there to 53 bits and then to 24, which
// differs from rounding once only if the first result lies halfway between two float32, or is so
// small that float32 has fewer bits; both are rare and left to fmaExact. (Elsewhere two roundings
// agree, since rounding is monotone and every halfway point is a float64.)
func FMA(a, b, s float64) float64 {
	if t := s + a*b; !mayRoundTwice(t) {
		return float64(float32(t))
	}
	return fmaExact(a, b, s)
}

// mayRoundTwice reports whether rounding t to float32 may differ from rounding the exact sum. It is
// small enough for the compiler to inline, which FMA is not.
func mayRoundTwice(t float64) bool {
	u := math.Float64bits(t)
	return u<<35 == 1<<63 || u<<1 < smallestNormal
}

// smallestNormal is the bits of 2⁻¹²⁶, the smallest normal float32, shifted past the sign.
const smallestNormal = (1023 - 126) << 53

// fmaExact rounds to odd first: if the sum is not exact, its last bit of 53 is made one, towards
// the exact value. It is then not a halfway point, and lies on the right side of all of them.
func fmaExact(a, b, s float64) float64 {
	p := float64(a * b)
	t := s + p
	// The rounding error of t, exactly (Knuth, The Art of Computer Programming, vol. 2, section
	// 4.2.2, theorem B).
	back := t - s
	lost := (s - (t - back)) + (p - back)
	if u := math.Float64bits(t); lost != 0 && u&1 == 0 {
		if lost > 0 == (t > 0) {
			u++
		} else {
			u--
		}
		t = math.Float64frombits(u)
	}
	return float64(float32(t))
}
