package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// gradientVariant is a second pass of a gradient. A stream goes past the cache.
type gradientVariant struct {
	name         string
	relu, stream bool
}

var gradients = []gradientVariant{
	{"gradient", false, false}, {"gradientReLU", true, false}, {"gradientStream", false, true}, {"gradientReLUStream",
		true, true},
}

// gradient writes dx = a·g + ((x − mean)·b + e), where g is dy, or dy where y > 0 and else 0, each
// step rounded to float32.
func gradient(c *build.Context, s set, variant gradientVariant) {
	var zero reg.VecVirtual
	w := &sweep{
		rows: rows{stream: variant.stream, output: "dx", matrices: []string{"x", "dy", "dx"},
			columns: []string{"mean", "a", "b", "e"}},
		prepare: func(w *sweep) {
			if variant.relu {
				zero = w.zero()
			}
		},
		vector: func(w *sweep, masked bool) {
			x, dy := w.load(w.element("x"), masked), w.load(w.element("dy"), masked)
			if variant.relu {
				dy = w.where(greater, w.load(w.element("y"), masked), zero, dy)
			}
			w.asm.VSUBPS(w.column("mean"), x, x)
			w.asm.VMULPS(w.column("b"), x, x)
			w.asm.VADDPS(w.column("e"), x, x)
			w.asm.VMULPS(w.column("a"), dy, dy)
			w.asm.VADDPS(x, dy, dy)
			w.put(dy, "dx", masked)
		},
	}
	doc := "computes dx = a·g + ((x − mean)·b + e) with g = dy"
	if variant.relu {
		w.matrices = append(w.matrices, "y")
		doc += " where y > 0 and else 0"
	}
	w.function(c, s, variant.name, "x, dy, y, dx, mean, a, b, e *float32", doc+"."+streamDoc(variant.stream))
}
