package vec

import (
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// A number is the byte times scale plus shift, rounded twice.
func TestDecodeRowsGo(t *testing.T) {
	v := kernel.ByteMatrix{Bytes: []uint8{9, 0, 255, 7, 1}, Starts: []int{3, 0}, Scale: 1.0 / 3, Shift: -0x1p-20}
	got, want := make([]float32, 4), []float32{float32(7*v.Scale) + v.Shift, float32(1*v.Scale) + v.Shift,
		float32(9*v.Scale) + v.Shift, v.Shift}
	decodeRowsGo(got, 2, v, 2, 2)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// Rows of any length, from any offset on, are decoded, and nothing around them changes.
func TestDecodeRows(t *testing.T) {
	const guard = -77
	for _, code := range isa.Available() {
		isa.With(code, func() {
			for rows := 1; rows < 4; rows++ {
				for cols := range 70 {
					v, want := kerneltest.Bytes(rows, cols+1)
					ds := cols + 1 + rows
					got := kernel.Aligned(rows*ds + 2)
					for i := range got {
						got[i] = guard
					}
					DecodeRows(got[1:], ds, v, rows, cols+1)
					for i, g := range got {
						r, c := (i-1)/ds, (i-1)%ds
						w := float32(guard)
						if i > 0 && r < rows && c <= cols {
							w = want[r*(cols+1)+c]
						}
						if !kerneltest.Same(g, w) {
							t.Fatalf("%v, %d×%d: word %d is %v, want %v", code, rows, cols+1, i, g, w)
						}
					}
				}
			}
		})
	}
}
