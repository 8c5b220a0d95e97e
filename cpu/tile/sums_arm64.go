package tile

// The tile of Plain on a processor with a fused multiply-add: sixteen sums, in as many registers.
const (
	PlainRows = 4
	PlainCols = 4
)

// plainSums returns the sums of a tile whose rows of A and columns of B begin at the given offsets.
// The compiler makes each s += x·y one fused instruction here, which the language allows but does
// not promise: TestProductPlain would fail otherwise.
func plainSums(depth int, a View, row [PlainRows]int, b View, col [PlainCols]int) [PlainRows][PlainCols]float32 {
	var (
		s00, s01, s02, s03 float32
		s10, s11, s12, s13 float32
		s20, s21, s22, s23 float32
		s30, s31, s32, s33 float32
	)
	for p := range depth {
		pa, pb := p*a.ColStride, p*b.RowStride
		b0, b1, b2, b3 := b.Data[pb+col[0]], b.Data[pb+col[1]], b.Data[pb+col[2]], b.Data[pb+col[3]]
		x0 := a.Data[pa+row[0]]
		s00 += x0 * b0
		s01 += x0 * b1
		s02 += x0 * b2
		s03 += x0 * b3
		x1 := a.Data[pa+row[1]]
		s10 += x1 * b0
		s11 += x1 * b1
		s12 += x1 * b2
		s13 += x1 * b3
		x2 := a.Data[pa+row[2]]
		s20 += x2 * b0
		s21 += x2 * b1
		s22 += x2 * b2
		s23 += x2 * b3
		x3 := a.Data[pa+row[3]]
		s30 += x3 * b0
		s31 += x3 * b1
		s32 += x3 * b2
		s33 += x3 * b3
	}
	return [PlainRows][PlainCols]float32{
		{s00, s01, s02, s03},
		{s10, s11, s12, s13},
		{s20, s21, s22, s23},
		{s30, s31, s32, s33},
	}
}
