package cpu

import (
	"slices"
	"testing"
)

// The operands, their transposes and the old C are laid out as in the BLAS.
func TestGemmExported(t *testing.T) {
	a, aT := []float32{1, 2, 0, 3, 4, 0}, []float32{1, 3, 2, 4}
	b, bT := []float32{5, 6, 7, 8, 9, 10}, []float32{5, 8, 0, 6, 9, 0, 7, 10, 0}
	// 2·A·B + C; numbers between rows do not change
	want := []float32{42 + 1, 48 + 2, 54 + 3, -1, 94 + 4, 108 + 5, 122 + 6, -1}
	for _, trans := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		left, lda, right, ldb := a, 3, b, 3
		if trans[0] {
			left, lda = aT, 2
		}
		if trans[1] {
			right, ldb = bT, 3
		}
		c := []float32{1, 2, 3, -1, 4, 5, 6, -1}
		Gemm(trans[0], trans[1], 2, 3, 2, 2, left, lda, right, ldb, 1, c, 4)
		if !slices.Equal(c, want) {
			t.Errorf("%v: %v, want %v", trans, c, want)
		}
	}
}

func TestGemmExportedRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a factor that is too short did not panic")
		}
	}()
	Gemm(false, false, 2, 2, 2, 1, make([]float32, 3), 2, make([]float32, 4), 2, 0, make([]float32, 4), 2)
}
