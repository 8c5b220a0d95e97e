package vec

import "fspda/cpu/kernel"

// The loops of layer normalization over rows of n numbers, in float64. Each product and sum is
// rounded. Rows of float64 are called wide. They stay in the first-level cache, so that each number
// is converted once. Each is padded to a multiple of 16 numbers (kernel.Padded). The padding is
// written and must be finite, but changes no result.

func widenSumsGo(sums, wide []float64, x []float32, n int) {
	for r := range sums {
		var s [rowSums]float64
		row := wide[r*kernel.Padded(n):]
		for j, v := range x[r*n:][:n] {
			row[j] = float64(v)
			s[j%rowSums] += float64(v)
		}
		sums[r] = tree(s[:])
	}
}

func centerSquaresGo(sums, wide, centers []float64, n int) {
	for r, center := range centers {
		var s [rowSums]float64
		row := wide[r*kernel.Padded(n):][:n]
		for j, v := range row {
			d := v - center
			row[j] = d
			s[j%rowSums] += float64(d * d)
		}
		sums[r] = tree(s[:])
	}
}

func normalizeRowsGo(dst []float32, wide, gamma, beta, scales []float64, n int) {
	for r, scale := range scales {
		row := dst[r*n:][:n]
		for j, v := range wide[r*kernel.Padded(n):][:n] {
			y := float64(float64(v*scale) * gamma[j])
			if beta != nil {
				y += beta[j]
			}
			row[j] = float32(y)
		}
	}
}

// slopeSums is the number of partial sums of GradSums.
const slopeSums = 8

// SlopeSums are the sums of the gradient of a row: of g, g·d and d.
type SlopeSums struct{ Slope, Along, Off float64 }

func gradSumsGo(sums []SlopeSums, wide, wideDY []float64, x, dy []float32, gamma, centers []float64, n int) {
	for r, center := range centers {
		var s, a, o [slopeSums]float64
		at := r * kernel.Padded(n)
		for j, v := range x[r*n:][:n] {
			k, d, slope := j%slopeSums, float64(v)-center, float64(dy[r*n+j])
			wide[at+j], wideDY[at+j] = d, slope
			g := float64(gamma[j] * slope)
			o[k] += d
			s[k] += g
			a[k] += float64(g * d)
		}
		sums[r] = SlopeSums{tree(s[:]), tree(a[:]), tree(o[:])}
	}
}

// RowSlope is what the gradient of a row depends on besides its numbers.
type RowSlope struct{ Delta, RStd, A, B float64 }

func gradRowsGo(dx, add []float32, d, dy, gamma, forGamma, forBeta []float64, slopes []RowSlope, n int) {
	for i, r := range slopes {
		at := i * kernel.Padded(n)
		for j, v := range d[at:][:n] {
			slope, normal := dy[at+j], float64((v-r.Delta)*r.RStd)
			g := float64(gamma[j]*slope) - r.A
			forBeta[j] += slope
			forGamma[j] += float64(slope * normal)
			v := float32((g - float64(normal*r.B)) * r.RStd)
			if add != nil {
				v += add[i*n+j]
			}
			dx[i*n+j] = v
		}
	}
}
