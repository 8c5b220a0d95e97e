//go:build !noasm && !fspda_noasm

package vec

import (
	"fmt"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
)

// checkRows panics unless all operands have rows of n numbers: the assembly does not check bounds.
// Those of float64 are wide, those of float32 are not.
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
	case isa.Active == isa.Go || rows*n == 0:
		widenSumsGo(sums, wide, x, n)
	case isa.Active == isa.AVX512:
		widenSumsAVX512(&sums[0], &wide[0], pointer(x), n, rows, kernel.Padded(n))
	default:
		widenSumsAVX2(&sums[0], &wide[0], pointer(x), n, rows, kernel.Padded(n))
	}
}

// CenterSquares subtracts the center of each row from wide, and writes the sum of squares of each
// row to sums, in the order of WidenSums.
func CenterSquares(sums, wide, centers []float64, n int) {
	rows := len(centers)
	sums = sums[:rows]
	checkRows(rows, n, nil, wide)
	switch {
	case isa.Active == isa.Go || rows*n == 0:
		centerSquaresGo(sums, wide, centers, n)
	case isa.Active == isa.AVX512:
		centerSquaresAVX512(&sums[0], &wide[0], &centers[0], n, rows, kernel.Padded(n))
	default:
		centerSquaresAVX2(&sums[0], &wide[0], &centers[0], n, rows, kernel.Padded(n))
	}
}

// NormalizeRows writes (wide·scale)·gamma to dst, plus beta unless that is nil, computed in float64
// and rounded once, scale that of the row.
func NormalizeRows(dst []float32, wide, gamma, beta, scales []float64, n int) {
	rows := len(scales)
	checkRows(rows, n, [][]float32{dst}, wide)
	checkRows(1, n, nil, gamma)
	if beta != nil {
		checkRows(1, n, nil, beta)
	}
	switch {
	case isa.Active == isa.Go || rows*n == 0:
		normalizeRowsGo(dst, wide, gamma, beta, scales, n)
	case isa.Active == isa.AVX512 && beta == nil:
		normalizeRowsAVX512(pointer(dst), &wide[0], &gamma[0], &scales[0], n, rows, kernel.Padded(n))
	case isa.Active == isa.AVX512:
		normalizeShiftRowsAVX512(pointer(dst), &wide[0], &gamma[0], &beta[0], &scales[0], n, rows, kernel.Padded(n))
	case beta == nil:
		normalizeRowsAVX2(pointer(dst), &wide[0], &gamma[0], &scales[0], n, rows, kernel.Padded(n))
	default:
		normalizeShiftRowsAVX2(pointer(dst), &wide[0], &gamma[0], &beta[0], &scales[0], n, rows, kernel.Padded(n))
	}
}

// GradSums writes d = x - center to wide and dy to wideDY, for rows of n numbers. It writes Σ g,
// Σ g·d and Σ d of each row to sums, with g = gamma·dy, in float64. Number j is added to partial sum
// j mod 8, and the partial sums are added as a tree.
func GradSums(sums []SlopeSums, wide, wideDY []float64, x, dy []float32, gamma, centers []float64, n int) {
	rows := len(centers)
	sums = sums[:rows]
	checkRows(rows, n, [][]float32{x, dy}, wide, wideDY)
	checkRows(1, n, nil, gamma)
	switch {
	case isa.Active == isa.Go || rows*n == 0:
		gradSumsGo(sums, wide, wideDY, x, dy, gamma, centers, n)
	case isa.Active == isa.AVX512:
		gradSumsAVX512(&sums[0].Slope, &wide[0], &wideDY[0], pointer(x), pointer(dy), &gamma[0], &centers[0], n, rows,
			kernel.Padded(n))
	default:
		gradSumsAVX2(&sums[0].Slope, &wide[0], &wideDY[0], pointer(x), pointer(dy), &gamma[0], &centers[0], n, rows,
			kernel.Padded(n))
	}
}

// GradRows writes dx = ((g - A) - x̂·B)·rstd for rows of n numbers, with x̂ = (d - delta)·rstd and
// g = gamma·dy. It computes in float64 and rounds once. It adds dy·x̂ to forGamma and dy to forBeta.
// d and dy are those that GradSums wrote. Unless add is nil, it is then added to dx in float32.
func GradRows(dx, add []float32, d, dy, gamma, forGamma, forBeta []float64, slopes []RowSlope, n int) {
	rows, stride := len(slopes), kernel.Padded(n)
	checkRows(rows, n, [][]float32{dx}, d, dy)
	checkRows(1, n, nil, gamma, forGamma, forBeta)
	if add != nil {
		checkRows(rows, n, [][]float32{add})
	}
	switch {
	case isa.Active == isa.Go || rows*n == 0:
		gradRowsGo(dx, add, d, dy, gamma, forGamma, forBeta, slopes, n)
	case isa.Active == isa.AVX512 && add == nil:
		gradRowsAVX512(pointer(dx), &d[0], &dy[0], &gamma[0], &forGamma[0], &forBeta[0], &slopes[0].Delta, n, rows,
			stride)
	case isa.Active == isa.AVX512:
		gradAddRowsAVX512(pointer(dx), pointer(add), &d[0], &dy[0], &gamma[0], &forGamma[0], &forBeta[0],
			&slopes[0].Delta, n, rows, stride)
	case add == nil:
		gradRowsAVX2(pointer(dx), &d[0], &dy[0], &gamma[0], &forGamma[0], &forBeta[0], &slopes[0].Delta, n, rows,
			stride)
	default:
		gradAddRowsAVX2(pointer(dx), pointer(add), &d[0], &dy[0], &gamma[0], &forGamma[0], &forBeta[0],
			&slopes[0].Delta, n, rows, stride)
	}
}
