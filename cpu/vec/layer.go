package vec

import (
	"fmt"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
)

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

// RowSlope holds the numbers of a row that its gradient depends on.
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

// checkRows panics unless all operands have rows of n numbers: the assembly does not check bounds.
// Operands of float64 are wide, operands of float32 are not.
func checkRows(rows, n int, narrow [][]float32, wide ...[]float64) {
	for _, v := range narrow {
		if len(v) < rows*n {
			panic(fmt.Sprintf("cpu: vec: %d numbers, want %d rows of %d", len(v), rows, n))
		}
	}
	for _, v := range wide {
		if stride := kernel.Padded(n); len(v) < rows*stride {
			panic(fmt.Sprintf("cpu: vec: %d float64, want %d rows, %d numbers apart", len(v), rows, stride))
		}
	}
}

// WidenSums writes rows of n numbers of x to wide, and the sum of each in float64 to sums: number j
// is added to partial sum j mod 16, and the partial sums as a tree.
func WidenSums(sums, wide []float64, x []float32, n int) {
	rows := len(sums)
	checkRows(rows, n, [][]float32{x}, wide)
	switch {
	case !isa.Assembly() || rows*n == 0:
		widenSumsGo(sums, wide, x, n)
	default:
		widenSumsAsm(&sums[0], &wide[0], pointer(x), n, rows, kernel.Padded(n))
	}
}

// CenterSquares subtracts the center of each row from wide, and writes the sum of squares of each
// row to sums, in the order of WidenSums.
func CenterSquares(sums, wide, centers []float64, n int) {
	rows := len(centers)
	sums = sums[:rows]
	checkRows(rows, n, nil, wide)
	switch {
	case !isa.Assembly() || rows*n == 0:
		centerSquaresGo(sums, wide, centers, n)
	default:
		centerSquaresAsm(&sums[0], &wide[0], &centers[0], n, rows, kernel.Padded(n))
	}
}

// NormalizeRows writes (wide·scale)·gamma to dst, plus beta unless that is nil, computed in float64
// and rounded once, with the scale of the row.
func NormalizeRows(dst []float32, wide, gamma, beta, scales []float64, n int) {
	rows := len(scales)
	checkRows(rows, n, [][]float32{dst}, wide)
	checkRows(1, n, nil, gamma)
	if beta != nil {
		checkRows(1, n, nil, beta)
	}
	switch {
	case !isa.Assembly() || rows*n == 0:
		normalizeRowsGo(dst, wide, gamma, beta, scales, n)
	case beta == nil:
		normalizeRowsAsm(pointer(dst), &wide[0], &gamma[0], &scales[0], n, rows, kernel.Padded(n))
	default:
		normalizeShiftRowsAsm(pointer(dst), &wide[0], &gamma[0], &beta[0], &scales[0], n, rows, kernel.Padded(n))
	}
}

// GradSums writes d = x - center to wide and dy to wideDY, for rows of n numbers. It writes Σ g,
// Σ g·d and Σ d of each row to sums, with g = gamma·dy, in float64. Number j is added to partial
// sum j mod 8, and the partial sums are added as a tree.
func GradSums(sums []SlopeSums, wide, wideDY []float64, x, dy []float32, gamma, centers []float64, n int) {
	rows := len(centers)
	sums = sums[:rows]
	checkRows(rows, n, [][]float32{x, dy}, wide, wideDY)
	checkRows(1, n, nil, gamma)
	switch {
	case !isa.Assembly() || rows*n == 0:
		gradSumsGo(sums, wide, wideDY, x, dy, gamma, centers, n)
	default:
		gradSumsAsm(&sums[0].Slope, &wide[0], &wideDY[0], pointer(x), pointer(dy), &gamma[0], &centers[0], n, rows,
			kernel.Padded(n))
	}
}

// GradRows writes dx = ((g - A) - x̂·B)·rstd for rows of n numbers, with x̂ = (d - delta)·rstd and
// g = gamma·dy. It computes in float64 and rounds once. It adds dy·x̂ to forGamma and dy to
// forBeta. d and dy are those that GradSums wrote. Unless add is nil, it is then added to dx in
// float32.
func GradRows(dx, add []float32, d, dy, gamma, forGamma, forBeta []float64, slopes []RowSlope, n int) {
	rows, stride := len(slopes), kernel.Padded(n)
	checkRows(rows, n, [][]float32{dx}, d, dy)
	checkRows(1, n, nil, gamma, forGamma, forBeta)
	if add != nil {
		checkRows(rows, n, [][]float32{add})
	}
	switch {
	case !isa.Assembly() || rows*n == 0:
		gradRowsGo(dx, add, d, dy, gamma, forGamma, forBeta, slopes, n)
	case add == nil:
		gradRowsAsm(pointer(dx), &d[0], &dy[0], &gamma[0], &forGamma[0], &forBeta[0], &slopes[0].Delta, n, rows,
			stride)
	default:
		gradAddRowsAsm(pointer(dx), pointer(add), &d[0], &dy[0], &gamma[0], &forGamma[0], &forBeta[0],
			&slopes[0].Delta, n, rows, stride)
	}
}
