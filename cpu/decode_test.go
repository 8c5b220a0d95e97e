package cpu

import "fspda/cpu/isa"

import "testing"

// A number is a byte times scale plus shift, rounded twice.
func TestDecodeRowsGo(t *testing.T) {
	v := coded{bytes: []uint8{9, 0, 255, 7, 1}, at: []int{3, 0}, scale: 1.0 / 3, shift: -0x1p-20}
	got, want := make([]float32, 4), []float32{float32(7*v.scale) + v.shift, float32(1*v.scale) + v.shift,
		float32(9*v.scale) + v.shift, v.shift}
	decodeRowsGo(got, 2, v, 2, 2)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// Rows of any length, from any place on, become numbers, and nothing beside them changes.
func TestDecodeRows(t *testing.T) {
	const guard = -77
	for _, code := range isa.Available() {
		isa.With(code, func() {
			for rows := 1; rows < 4; rows++ {
				for cols := range 70 {
					v, want := randomBytes(rows, cols+1)
					ds := cols + 1 + rows
					got := aligned(rows*ds + 2)
					for i := range got {
						got[i] = guard
					}
					decodeRows(got[1:], ds, v, rows, cols+1)
					for i, g := range got {
						r, c := (i-1)/ds, (i-1)%ds
						w := float32(guard)
						if i > 0 && r < rows && c <= cols {
							w = want[r*(cols+1)+c]
						}
						if !same(g, w) {
							t.Fatalf("%v, %d×%d: word %d is %v, want %v", code, rows, cols+1, i, g, w)
						}
					}
				}
			}
		})
	}
}
