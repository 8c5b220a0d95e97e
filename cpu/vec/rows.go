package vec

// RowMaxima writes the largest number of each row of n numbers to tops; NaN are ignored.
func RowMaxima(tops, x []float32, n int) { rowMaxima(tops, x, n) }

// ExpRows writes exp(x - top), computed in float32 within 1.5 ulp, to dst for rows of n numbers,
// and the sum of each row to sums: number j of a row is added to partial sum j mod 16 in float32,
// and the partial sums as a tree in float64. Results below 2⁻¹²⁶ are 0, those above 2¹²⁷ may be
// infinite, and NaN stays NaN. dst may be x.
func ExpRows(dst []float32, sums []float64, x, tops []float32, n int) {
	floatExpRows(dst, sums, x, tops, n)
}

// ScaleRows writes rows of n numbers of x times scales to dst, whose rows lie stride numbers apart.
// dst may be x if stride is n.
func ScaleRows(dst, x, scales []float32, n, stride int) { scaleRows(dst, x, scales, n, stride) }

// TimesRows writes the rows of n numbers of src times scales, multiplied in float64, to dst, which
// may be src.
func TimesRows(dst, src []float32, scales []float64, n int) { timesRows(dst, src, scales, n) }

// SlopeRows writes p·(d - mean) to dst for rows of n numbers, with the mean of the row, in
// float64 and rounded once: the gradient of softmax. Rows of dst and p lie stride numbers apart,
// rows of d n numbers. dst may be p, and d if stride is n.
func SlopeRows(dst, p, d []float32, means []float64, n, stride int) {
	slopeRows(dst, p, d, means, n, stride)
}

// Dot returns Σ x·y in float64: product k is added to partial sum k mod 32, and the partial sums
// are added as a tree.
func Dot(x, y []float32) float64 { return dot(x, y) }

// Log returns the natural logarithm of x, a normal positive number or NaN, with a relative error of
// at most 2^-33.
func Log(x float64) float64 { return logOf(x) }

// Exp returns e^x in float64 with a relative error below 2^-27; x is clamped to ±150.
func Exp(x float64) float64 {
	v := [1]float64{x}
	exps(v[:])
	return v[0]
}

// Adds writes a + b to dst, which may be a or b.
func Adds(dst, a, b []float32) { adds(dst, a, b, false) }
