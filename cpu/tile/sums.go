//go:build !arm64

package tile

// The tile of Plain: eight sums, which keep the processor busy while each waits for its last
// rounding.
const (
	PlainRows = 2
	PlainCols = 4
)

// plainSums returns the sums of a tile whose rows of A and columns of B begin at the given offsets:
// fused multiply-adds, eight at a time.
func plainSums(depth int, a View, row [PlainRows]int, b View, col [PlainCols]int) [PlainRows][PlainCols]float32 {
	var s00, s01, s02, s03, s10, s11, s12, s13 float64
	for p := range depth {
		pa, pb := p*a.ColStride, p*b.RowStride
		x, y := float64(a.Data[pa+row[0]]), float64(a.Data[pa+row[1]])
		b0, b1, b2, b3 := float64(b.Data[pb+col[0]]), float64(b.Data[pb+col[1]]), float64(b.Data[pb+col[2]]), float64(
			b.Data[pb+col[3]])
		t00, t01, t02, t03 := s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		t10, t11, t12, t13 := s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		if mayRoundTwice(t00) || mayRoundTwice(t01) || mayRoundTwice(t02) ||
			mayRoundTwice(t03) || mayRoundTwice(t10) || mayRoundTwice(t11) || mayRoundTwice(t12) || mayRoundTwice(t13) {
			t00, t01, t02, t03 = FMA(x, b0, s00), FMA(x, b1, s01), FMA(x, b2, s02), FMA(x, b3, s03)
			t10, t11, t12, t13 = FMA(y, b0, s10), FMA(y, b1, s11), FMA(y, b2, s12), FMA(y, b3, s13)
		}
		s00, s01, s02, s03 = float64(float32(t00)), float64(float32(t01)), float64(float32(t02)), float64(float32(t03))
		s10, s11, s12, s13 = float64(float32(t10)), float64(float32(t11)), float64(float32(t12)), float64(float32(t13))
	}
	return [PlainRows][PlainCols]float32{{float32(s00), float32(s01), float32(s02), float32(s03)},
		{float32(s10), float32(s11), float32(s12), float32(s13)}}
}
