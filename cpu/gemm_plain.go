package cpu

// productPlain is gemm in Go: its meaning, and the product where there is no assembly. The assembly gives the same bits.
func productPlain(m, n, k int, alpha float32, a, b view, beta float32, c view) {
	for p := 0; p < k; p += gemmDepth {
		depth := min(gemmDepth, k-p)
		if p > 0 {
			beta = 1
		}
		for i := 0; i < m; i += plainRows {
			for j := 0; j < n; j += plainCols {
				plainTile(min(plainRows, m-i), min(plainCols, n-j), depth, alpha, a.from(i, p), b.from(p, j), beta, c.from(i, j))
			}
		}
	}
}

// The tile of productPlain: eight sums, which keep the processor busy while each waits for its last rounding.
const (
	plainRows = 2
	plainCols = 4
)

// plainTile computes one block of depth products for rows×cols elements of C.
func plainTile(rows, cols, depth int, alpha float32, a, b view, beta float32, c view) {
	var s [plainRows][plainCols]float64
	if rows == 1 {
		a.rs = 0 // the tile has the same row twice
	}
	if cols == plainCols {
		s = plainSums(depth, a, b)
	} else {
		for i := range rows {
			for j := range cols {
				for p := range depth {
					s[i][j] = fused(float64(a.data[i*a.rs+p*a.cs]), float64(b.data[p*b.rs+j*b.cs]), s[i][j])
				}
			}
		}
	}
	for i := range rows {
		row := c.data[i*c.rs:][:cols]
		for j, old := range row {
			if beta == 0 {
				row[j] = alpha * float32(s[i][j])
			} else {
				row[j] = float32(fused(float64(alpha), s[i][j], float64(float32(beta*old))))
			}
		}
	}
}

// plainSums returns the sums of a full tile: fused, eight at a time.
func plainSums(depth int, a, b view) [plainRows][plainCols]float64 {
	var s00, s01, s02, s03, s10, s11, s12, s13 float64
	for p := range depth {
		pa, pb := p*a.cs, p*b.rs
		x, y := float64(a.data[pa]), float64(a.data[pa+a.rs])
		b0, b1, b2, b3 := float64(b.data[pb]), float64(b.data[pb+b.cs]), float64(b.data[pb+2*b.cs]), float64(b.data[pb+3*b.cs])
		t00, t01, t02, t03 := s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		t10, t11, t12, t13 := s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		if risky(t00) || risky(t01) || risky(t02) || risky(t03) || risky(t10) || risky(t11) || risky(t12) || risky(t13) {
			t00, t01, t02, t03 = fused(x, b0, s00), fused(x, b1, s01), fused(x, b2, s02), fused(x, b3, s03)
			t10, t11, t12, t13 = fused(y, b0, s10), fused(y, b1, s11), fused(y, b2, s12), fused(y, b3, s13)
		}
		s00, s01, s02, s03 = float64(float32(t00)), float64(float32(t01)), float64(float32(t02)), float64(float32(t03))
		s10, s11, s12, s13 = float64(float32(t10)), float64(float32(t11)), float64(float32(t12)), float64(float32(t13))
	}
	return [plainRows][plainCols]float64{{s00, s01, s02, s03}, {s10, s11, s12, s13}}
}
