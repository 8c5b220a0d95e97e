//go:build !amd64 || noasm || fspda_noasm

package vec

func WidenSums(sums, wide []float64, x []float32, n int) { widenSumsGo(sums, wide, x, n) }

func CenterSquares(sums, wide, centers []float64, n int) { centerSquaresGo(sums, wide, centers, n) }

func NormalizeRows(dst []float32, wide, gamma, beta, scales []float64, n int) {
	normalizeRowsGo(dst, wide, gamma, beta, scales, n)
}

func GradSums(sums []SlopeSums, wide, wideDY []float64, x, dy []float32, gamma, centers []float64, n int) {
	gradSumsGo(sums, wide, wideDY, x, dy, gamma, centers, n)
}

func GradRows(dx, add []float32, d, dy, gamma, forGamma, forBeta []float64, slopes []RowSlope, n int) {
	gradRowsGo(dx, add, d, dy, gamma, forGamma, forBeta, slopes, n)
}
