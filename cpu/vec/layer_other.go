//go:build !amd64 || noasm || fspda_noasm

package vec

func CenteredSum(x []float32, center float64) float64     { return centeredSumGo(x, center) }
func CenteredSquares(x []float32, center float64) float64 { return centeredSquaresGo(x, center) }

func NormalizeRow(dst, x, gamma, beta []float32, center, scale float64) {
	normalizeRowGo(dst, x, gamma, beta, center, scale)
}

func GradSums(x, dy, gamma []float32, center float64) (slope, along, off float64) {
	return gradSumsGo(x, dy, gamma, center)
}

func GradRow(dx, x, dy, gamma []float32, forGamma, forBeta []float64, r *RowSlope) {
	gradRowGo(dx, x, dy, gamma, forGamma, forBeta, r)
}
