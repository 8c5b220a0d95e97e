package vec

// The loops of layer normalization over a row, in float64. Each product and sum is rounded.

func centeredSumGo(x []float32, center float64) float64 {
	var s [rowSums]float64
	for j, v := range x {
		s[j%rowSums] += float64(v) - center
	}
	return tree(s[:])
}

func centeredSquaresGo(x []float32, center float64) float64 {
	var s [rowSums]float64
	for j, v := range x {
		d := float64(v) - center
		s[j%rowSums] += float64(d * d)
	}
	return tree(s[:])
}

// normalizeRowGo writes ((x - center)·scale)·gamma to dst, plus beta unless that is nil.
func normalizeRowGo(dst, x, gamma, beta []float32, center, scale float64) {
	gamma = gamma[:len(x)]
	for j, v := range x {
		y := float64(float64((float64(v)-center)*scale) * float64(gamma[j]))
		if beta != nil {
			y += float64(beta[j])
		}
		dst[j] = float32(y)
	}
}

// slopeSums is the number of partial sums of GradSums.
const slopeSums = 8

func gradSumsGo(x, dy, gamma []float32, center float64) (slope, along, off float64) {
	var s, a, o [slopeSums]float64
	for j, v := range x {
		k, d, g := j%slopeSums, float64(v)-center, float64(float64(gamma[j])*float64(dy[j]))
		o[k] += d
		s[k] += g
		a[k] += float64(g * d)
	}
	return tree(s[:]), tree(a[:]), tree(o[:])
}

// RowSlope is what the gradient of a row depends on besides its numbers.
type RowSlope struct{ Mean, Delta, RStd, A, B float64 }

func gradRowGo(dx, x, dy, gamma []float32, forGamma, forBeta []float64, r *RowSlope) {
	for j, v := range x {
		normal, d := float64(((float64(v)-r.Mean)-r.Delta)*r.RStd), float64(dy[j])
		g := float64(float64(gamma[j])*d) - r.A
		forBeta[j] += d
		forGamma[j] += float64(d * normal)
		dx[j] = float32((g - float64(normal*r.B)) * r.RStd)
	}
}
