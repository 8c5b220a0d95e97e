//go:build !noasm && !fspda_noasm

package vec

import (
	"fspda/cpu/isa"
)

// CenteredSum returns Σ (x - center) in float64: number j is added to partial sum j mod 16, and the
// partial sums as a tree.
func CenteredSum(x []float32, center float64) float64 {
	switch isa.Active {
	case isa.AVX512:
		return centeredSumAVX512(pointer(x), &center, len(x))
	case isa.AVX2:
		return centeredSumAVX2(pointer(x), &center, len(x))
	}
	return centeredSumGo(x, center)
}

// CenteredSquares returns Σ (x - center)² as CenteredSum adds.
func CenteredSquares(x []float32, center float64) float64 {
	switch isa.Active {
	case isa.AVX512:
		return centeredSquaresAVX512(pointer(x), &center, len(x))
	case isa.AVX2:
		return centeredSquaresAVX2(pointer(x), &center, len(x))
	}
	return centeredSquaresGo(x, center)
}

// NormalizeRow writes ((x - center)·scale)·gamma to dst, plus beta unless that is nil, computed in
// float64 and rounded once.
func NormalizeRow(dst, x, gamma, beta []float32, center, scale float64) {
	n := len(x)
	params := [2]float64{center, scale}
	dst, gamma = dst[:n], gamma[:n]
	if beta != nil {
		beta = beta[:n]
	}
	switch {
	case isa.Active == isa.Go:
		normalizeRowGo(dst, x, gamma, beta, center, scale)
	case isa.Active == isa.AVX512 && beta == nil:
		normalizeRowAVX512(pointer(dst), pointer(x), pointer(gamma), &params[0], n)
	case isa.Active == isa.AVX512:
		normalizeShiftRowAVX512(pointer(dst), pointer(x), pointer(gamma), pointer(beta), &params[0], n)
	case beta == nil:
		normalizeRowAVX2(pointer(dst), pointer(x), pointer(gamma), &params[0], n)
	default:
		normalizeShiftRowAVX2(pointer(dst), pointer(x), pointer(gamma), pointer(beta), &params[0], n)
	}
}

// GradSums returns Σ g, Σ g·d and Σ d with d = x - center and g = gamma·dy, in float64: number j is
// added to partial sum j mod 8, and the partial sums as a tree.
func GradSums(x, dy, gamma []float32, center float64) (slope, along, off float64) {
	var sums [3]float64
	n := len(x)
	dy, gamma = dy[:n], gamma[:n]
	switch isa.Active {
	case isa.AVX512:
		gradSumsAVX512(&sums[0], pointer(x), pointer(dy), pointer(gamma), &center, n)
	case isa.AVX2:
		gradSumsAVX2(&sums[0], pointer(x), pointer(dy), pointer(gamma), &center, n)
	default:
		return gradSumsGo(x, dy, gamma, center)
	}
	return sums[0], sums[1], sums[2]
}

// GradRow writes dx = ((g - A) - x̂·B)·rstd with x̂ = ((x - mean) - delta)·rstd and g = gamma·dy, and
// adds dy·x̂ to forGamma and dy to forBeta, in float64.
func GradRow(dx, x, dy, gamma []float32, forGamma, forBeta []float64, r *RowSlope) {
	n := len(x)
	dx, dy, gamma, forGamma, forBeta = dx[:n], dy[:n], gamma[:n], forGamma[:n], forBeta[:n]
	whole := 0
	if isa.Active != isa.Go && n >= 8 {
		whole = n &^ 7
	}
	switch {
	case whole == 0:
	case isa.Active == isa.AVX512:
		gradRowAVX512(pointer(dx), pointer(x), pointer(dy), pointer(gamma), &forGamma[0], &forBeta[0], &r.Mean, whole)
	default:
		gradRowAVX2(pointer(dx), pointer(x), pointer(dy), pointer(gamma), &forGamma[0], &forBeta[0], &r.Mean, whole)
	}
	gradRowGo(dx[whole:], x[whole:], dy[whole:], gamma[whole:], forGamma[whole:], forBeta[whole:], r)
}
