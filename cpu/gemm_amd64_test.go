//go:build !noasm

package cpu

import "fspda/cpu/isa"

import (
	"math"
	"testing"
	"time"
)

// implementations is the product with every instruction set of this processor.
func implementations() []implementation {
	var all []implementation
	for _, i := range isa.Available() {
		if s := setOf(i); s != nil {
			all = append(all, implementation{i.String(), func(m, n, k int, alpha float32, a, b view, beta float32, c view, then epilogue) {
				productOn(s, m, n, k, alpha, a, b, beta, c, then)
			}, func() float64 { return s.peak(time.Millisecond) }})
		}
	}
	return all
}

// A product is the same with the sets in any order, and with none.
func TestProductWithoutAssembly(t *testing.T) {
	c := []float32{float32(math.NaN())}
	isa.With(isa.Go, func() { gemm(false, false, 1, 1, 2, 2, []float32{1, 2}, 2, []float32{3, 4}, 1, 0, c, 1) })
	if c[0] != 22 {
		t.Errorf("got %v, want 22", c[0])
	}
}

// The workspace of a product has room for the strips and panels of every set.
func TestWorkspaceFitsTiles(t *testing.T) {
	for _, i := range isa.Available() {
		s := setOf(i)
		if s == nil {
			continue
		}
		if high := len(s.tiles); high > stripRows {
			t.Errorf("%s: %d rows do not fit into a strip of %d", i, high, stripRows)
		}
		if blockCols%(2*s.lanes) != 0 {
			t.Errorf("%s: %d columns are not a whole number of panels", i, blockCols)
		}
	}
}
