package vec

import "math"

// The distribution function Φ of the normal distribution, in float64: with t = |x|/√2 and u =
// 1/(1+t/2), half of erfc(t) is h = u·P(u)·exp(−t²), P a polynomial of degree 12 in a variable that
// goes from −1 to 1 for t from 9.5 to 0. The relative error is below 2^-31. Φ is h for negative x,
// which keeps its digits, and 1−h for others.
const (
	erfStep   = 0.35355339059327373 // 1/(2√2)
	erfScale  = 2.4210526315789473
	erfShift  = -1.4210526315789471
	erfDegree = 12
	erfSquare = -0.7213475204444817 // -1/(2·ln 2)
	density   = 0.3989422804014327  // 1/sqrt(2π)
)

// erfPolynomial is half of P, the constant first.
var erfPolynomial = [erfDegree + 1]float64{
	0.287428206075337,
	0.16257306412161412,
	0.05020658280024105,
	0.002799627953470907,
	-0.002984051066995133,
	-0.0002805900565683749,
	0.00028273548070380185,
	-2.516069985043501e-06,
	-3.0328619901762722e-05,
	5.881536386311837e-06,
	2.37439163456088e-06,
	-9.426509711829567e-07,
	-4.3924707995302015e-08,
}

// halfErfcs writes exp(−x²/2) to e and half of erfc(|x|/√2) to h.
func halfErfcs(e, h []float64, x []float32) {
	for i, f := range x[:len(e)] {
		v := float64(f)
		e[i] = float64(v*v) * erfSquare
	}
	powers(e)
	for i, f := range x[:len(e)] {
		u := reciprocal(math.FMA(erfSize(f), erfStep, 1))
		z := math.FMA(u, erfScale, erfShift)
		p := erfPolynomial[erfDegree]
		for k := erfDegree - 1; k >= 0; k-- {
			p = math.FMA(p, z, erfPolynomial[k])
		}
		h[i] = float64(u*p) * e[i]
	}
}

// erfSize is |x|, or a number beyond which Φ(-|x|) is 0.
func erfSize(x float32) float64 {
	if x > powerBound || x < -powerBound {
		return powerBound
	}
	return math.Abs(float64(x))
}

// geluErfsGo computes in float64 and rounds once.
func geluErfsGo(dst, x []float32) {
	var e, h [expBlock]float64
	for len(x) > 0 {
		n := min(expBlock, len(x))
		halfErfcs(e[:n], h[:n], x)
		for i, f := range x[:n] {
			v := float64(f)
			positive := v
			if v < 0 {
				positive = 0
			}
			dst[i] = float32(math.FMA(-erfSize(f), h[i], positive))
		}
		x, dst = x[n:], dst[n:]
	}
}

// geluErfGradsGo computes in float64 and rounds once.
func geluErfGradsGo(dst, x, dy []float32) {
	var e, h [expBlock]float64
	for len(x) > 0 {
		n := min(expBlock, len(x))
		halfErfcs(e[:n], h[:n], x)
		for i, f := range x[:n] {
			v, phi := float64(f), h[i]
			if v > 0 {
				phi = 1 - phi
			}
			dst[i] = float32(float64(dy[i]) * math.FMA(float64(v*e[i]), density, phi))
		}
		x, dy, dst = x[n:], dy[n:], dst[n:]
	}
}
