//go:build !arm64

package cpu

// The tile of productPlain: eight sums, which keep the processor busy while each waits for its last
// rounding.
const (
	plainRows = 2
	plainCols = 4
)

// plainSums returns the sums of a tile whose rows of A and columns of B begin at the given offsets:
// fused, eight at a time.
func plainSums(depth int, a view, row [plainRows]int, b view, col [plainCols]int) [plainRows][plainCols]float32 {
	var s00, s01, s02, s03, s10, s11, s12, s13 float64
	for p := range depth {
		pa, pb := p*a.cs, p*b.rs
		x, y := float64(a.data[pa+row[0]]), float64(a.data[pa+row[1]])
		b0, b1, b2, b3 := float64(b.data[pb+col[0]]), float64(b.data[pb+col[1]]), float64(b.data[pb+col[2]]), float64(
			b.data[pb+col[3]])
		t00, t01, t02, t03 := s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		t10, t11, t12, t13 := s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		if risky(t00) || risky(t01) || risky(t02) || risky(t03) || risky(t10) || risky(t11) || risky(t12) ||
			risky(t13) {
			t00, t01, t02, t03 = fused(x, b0, s00), fused(x, b1, s01), fused(x, b2, s02), fused(x, b3, s03)
			t10, t11, t12, t13 = fused(y, b0, s10), fused(y, b1, s11), fused(y, b2, s12), fused(y, b3, s13)
		}
		s00, s01, s02, s03 = float64(float32(t00)), float64(float32(t01)), float64(float32(t02)), float64(float32(t03))
		s10, s11, s12, s13 = float64(float32(t10)), float64(float32(t11)), float64(float32(t12)), float64(float32(t13))
	}
	return [plainRows][plainCols]float32{{float32(s00), float32(s01), float32(s02), float32(s03)},
		{float32(s10), float32(s11), float32(s12), float32(s13)}}
}
