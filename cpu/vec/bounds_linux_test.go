package vec

import (
	"testing"

	"fspda/cpu/isa"
	"fspda/internal/testing/kerneltest"
)

// No vector is read or written behind its last number.
func TestVecStaysInBounds(t *testing.T) {
	lengths := []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 23, 24, 25, 31, 33, 47, 63, 65, 100, 4100}
	for _, c := range allCases() {
		for _, n := range lengths {
			var v [][]float32
			for range c.vectors {
				v = append(v, kerneltest.Fenced(t, n))
			}
			for _, code := range isa.Available() {
				isa.With(code, func() { c.run(v) })
			}
		}
	}
	for _, n := range lengths {
		for _, rows := range []int{1, 3} {
			x, e, scaled, tops, sums := kerneltest.Fenced(t, n*rows), kerneltest.Fenced(t, n*rows), kerneltest.Fenced(t,
				n*rows), kerneltest.Fenced(t, rows), make([]float64, rows)
			columns, at := kerneltest.Fenced(t, n), make([]uint32, n)
			for j := range at {
				at[j] = uint32(j)
			}
			for _, code := range isa.Available() {
				isa.With(code, func() {
					if n <= vecBlock {
						rowMaxima(tops, x, n)
						expRows(e, sums, x, tops, n)
						timesRows(scaled, e, sums, n)
						floatExpRows(e, sums, x, tops, n)
						scaleRows(e, e, tops, n, n)
						slopeRows(e, scaled, e, sums, n, n)
					}
					ColumnSums(columns, x, rows, n)
					gatherAt(columns, x, at)
				})
			}
		}
	}
}
