package model

import (
	"slices"
	"testing"
)

// A filter of 2 outputs, 2×2 pixels and 3 inputs converts to OIHW as computed by hand, and back.
func TestOutward(t *testing.T) {
	filter := Tensor{Name: "w", Shape: []int{2, 2, 2, 3}, Axes: OHWI, Size: 24}
	ours, out, back := make([]float32, 24), make([]float32, 24), make([]float32, 24)
	for k := range ours {
		ours[k] = float32(k)
	}
	filter.ToTorch(out, ours)
	if want := []float32{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, 12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20,
		23}; !slices.Equal(out, want) {
		t.Errorf("got %v, want %v", out, want)
	}
	if got := filter.TorchShape(); !slices.Equal(got, []int{2, 3, 2, 2}) {
		t.Errorf("shape %v", got)
	}
	filter.FromTorch(back, out)
	if !slices.Equal(back, ours) {
		t.Errorf("%v came back", back)
	}
	matrix := Tensor{Name: "m", Shape: []int{4, 6}, Size: 24}
	matrix.ToTorch(out, ours)
	if !slices.Equal(out, ours) || !slices.Equal(matrix.TorchShape(), matrix.Shape) {
		t.Errorf("a matrix was turned: %v", out)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic at a wrong length")
		}
	}()
	filter.ToTorch(out[1:], ours)
}
