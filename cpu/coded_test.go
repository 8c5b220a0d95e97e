package cpu

import (
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// randomBytes are examples of bytes that lie in any order, some of them twice.
func randomBytes(rows, cols int) (coded, []float32) {
	s := rng.New(3, "coded", uint64(rows), uint64(cols))
	v := coded{bytes: make([]uint8, (rows+3)*cols), scale: 0.0123, shift: -0.77}
	for i := range v.bytes {
		v.bytes[i] = uint8(s.IntN(256))
	}
	for i := range rows + spareRows {
		v.at = append(v.at, s.IntN(rows+3)*cols)
		if i >= rows {
			v.at[i] = v.at[rows-1]
		}
	}
	numbers := make([]float32, rows*cols)
	decodeRowsGo(numbers, cols, v, rows, cols)
	return v, numbers
}

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
	for _, code := range vecCodes() {
		inCode(code, func() {
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

// Where one call reads the examples in a way that bytes do not serve, all calls get numbers.
func TestReadsBytes(t *testing.T) {
	x := device.Ref{Space: device.Input, Len: 12}
	linear := device.Call{Kernel: device.Linear, In: []device.Ref{x, {Space: device.Params}, {Space: device.Params}},
		Dims: []int{3, 2, 4}}
	code := func(calls ...device.Call) *device.Code { return &device.Code{Batch: 3, Features: 4, Calls: calls} }
	if !readsBytes(code(linear, linear)) {
		t.Error("layers do not read bytes")
	}
	conv := linear
	conv.Kernel = device.Conv
	whole := linear
	whole.Dims = []int{1, 2, 12}
	part := linear
	part.In = []device.Ref{{Space: device.Input, Len: 8}, {}, {}}
	second := linear
	second.In = []device.Ref{x, x, {}}
	for what, c := range map[string]device.Call{"a convolution": conv, "another shape": whole, "a part": part,
		"a second input": second} {
		if readsBytes(code(linear, c)) {
			t.Errorf("%s reads bytes", what)
		}
	}
}
