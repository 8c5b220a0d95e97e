package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// gradientVariant is a second pass of a gradient; stream means non-temporal stores.
type gradientVariant struct {
	name         string
	relu, stream bool
}

var gradients = []gradientVariant{
	{"gradient", false, false}, {"gradientReLU", true, false}, {"gradientStream", false, true}, {"gradientReLUStream",
		true, true},
}

// gradient writes dx = a·g + ((x − mean)·b + e), where g is dy, with a ReLU 0 unless y > 0, each
// step rounded to float32.
func gradient(c *build.Context, s set, variant gradientVariant) {
	var zero reg.VecVirtual
	w := &reversePass{
		rows: rows{stream: variant.stream, output: "dx", matrices: []string{"x", "dy", "dx"},
			columns: []string{"mean", "a", "b", "e"}},
		prepare: func(w *reversePass) {
			if variant.relu {
				zero = w.zero()
			}
		},
		vector: func(w *reversePass, masked bool) {
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
		doc += " if y > 0, else 0"
	}
	w.function(c, s, variant.name, "x, dy, y, dx, mean, a, b, e *float32", doc+"."+streamDoc(variant.stream))
}
