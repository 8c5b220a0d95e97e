package conv

import "testing"

// The parts of the weight gradient are all pixels, in order.
func TestConvPixels(t *testing.T) {
	for _, dims := range convDims {
		v := convolutionOf(dims)
		images, rows, cols := v.pixelParts()
		next := 0
		for m := range images * rows * cols {
			x := v.pixelPart(m)
			if at := (x.n*v.p+x.i)*v.q + x.j; at != next || x.count() > maxPixels || x.count() < 1 {
				t.Fatalf("%v: part %d is %+v at %d, want %d", dims, m, x, at, next)
			}
			next += x.count()
		}
		if next != v.n*v.p*v.q {
			t.Errorf("%v: parts have %d of %d pixels", dims, next, v.n*v.p*v.q)
		}
	}
}
