package conv

import (
	"testing"

	"fspda/cpu/tile"
)

// The chunks of a correlation are all of its products, once; and the taps of all correlations of a
// data gradient are those of the filter.
func TestConvChunks(t *testing.T) {
	for _, dims := range convDims {
		v := convolutionOf(dims)
		slides, taps, pixels := []correlation{v.forward()}, 0, 0
		for i := range v.stride {
			for j := range v.stride {
				l := v.backward(i, j)
				taps, pixels = taps+l.r*l.s, pixels+l.p*l.q
				if l.r > 0 && l.s > 0 {
					slides = append(slides, l)
				}
			}
		}
		if taps != v.r*v.s || pixels != v.h*v.w {
			t.Errorf("%v: the data gradient has %d taps and %d pixels", dims, taps, pixels)
		}
		for _, l := range slides {
			next := 0
			for m := range l.chunks() {
				c, before := l.chunk(m)
				if before != next || c.depth() < 1 || c.depth() > tile.Depth || c.row*l.s*l.channels+c.skip != before {
					t.Fatalf("%v: chunk %d is %+v after %d, want %d", dims, m, c, before, next)
				}
				next += c.depth()
			}
			if next != l.products() {
				t.Errorf("%v: chunks have %d of %d products", dims, next, l.products())
			}
		}
	}
}
