package gemm

import (
	"math"
	"testing"
	"time"

	"fspda/cpu/isa"
	"fspda/cpu/tile"
)

// implementations returns the product with every instruction set of this processor.
func implementations() []implementation {
	var all []implementation
	for _, i := range isa.Available() {
		if s := tile.SetOf(i); s != nil {
			all = append(all, implementation{i.String(),
				func(m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View, then epilogue) {
					packedProduct(s, m, n, k, alpha, a, b, beta, c, then)
				}, func() float64 { return s.Peak(time.Millisecond) }})
		}
	}
	return all
}

// Without assembly the product is the same.
func TestProductWithoutAssembly(t *testing.T) {
	c := []float32{float32(math.NaN())}
	isa.With(isa.Go, func() { Multiply(false, false, 1, 1, 2, 2, []float32{1, 2}, 2, []float32{3, 4}, 1, 0, c, 1) })
	if c[0] != 22 {
		t.Errorf("got %v, want 22", c[0])
	}
}

// The workspace of a product fits the strips and panels of every set.
func TestWorkspaceFitsTiles(t *testing.T) {
	for _, i := range isa.Available() {
		s := tile.SetOf(i)
		if s == nil {
			continue
		}
		if high := len(s.Tiles); high > maxStripRows {
			t.Errorf("%s: %d rows do not fit into a strip of %d", i, high, maxStripRows)
		}
		if blockCols%(2*s.Lanes) != 0 {
			t.Errorf("%s: %d columns are not a whole number of panels", i, blockCols)
		}
	}
}
