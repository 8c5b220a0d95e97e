package gemm

import (
	"fmt"
	"testing"

	"fspda/cpu/tile"
	"fspda/internal/testing/kerneltest"
)

// Products with a factor that is packed together have the same bits, whatever the number of parts.
func TestPackedTogether(t *testing.T) {
	if tile.Active() == nil {
		t.Skip("a product in Go packs no factor")
	}
	for _, s := range []struct {
		what  string
		shape func(dims []int) call
		dims  []int
	}{
		{"columns of op(B), one chunk", forward, []int{770, 368, 128}},
		{"columns of op(B), strip by strip", forward, []int{770, 112, 500}},
		{"rows of op(B)", toInput, []int{401, 200, 128}},
		{"op(B) beside op(A) of other rows", toWeights, []int{769, 352, 128}},
		{"op(A)", toWeights, []int{769, 128, 416}},
	} {
		g := s.shape(s.dims)
		g.a, g.b = kerneltest.Noise("a", g.m*g.k), kerneltest.Noise("b", g.n*g.k)
		g.epilogue = epilogue{op: addBias, operand: kerneltest.Noise("bias", g.n)}
		want := make([]float32, g.m*g.n)
		g.c = want
		g.run()
		size := g.togetherSize(2)
		if size == 0 {
			t.Errorf("%s: no factor is packed together", s.what)
			continue
		}
		for _, parts := range [][2]int{{1, 1}, {2, 8}, {5, 3}, {100, 150}} {
			factor := kerneltest.Noise("rubbish", size)
			for part := range parts[0] {
				g.packTogether(factor, part, parts[0])
			}
			g.c = make([]float32, g.m*g.n)
			for part := range parts[1] {
				g.runPacked(factor, part, parts[1])
			}
			kerneltest.Compare(t, fmt.Sprint(s.what, " in parts ", parts), g.c, want)
		}
	}
}
