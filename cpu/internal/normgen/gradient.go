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
	{"gradient", false, false}, {"gradientReLU", true, false}, {"gradientStream", false, true}, {"gradientReLUStream", true, true},
}

// gradient writes dx = a·g + ((x − mean)·b + e), where g is dy, or dy where y > 0 and else 0, each step rounded to float32.
func gradient(c *build.Context, s set, variant gradientVariant) {
	var mean, a, b, e []reg.VecVirtual
	var zero reg.VecVirtual
	w := &walk{
		stream: variant.stream,
		output: "dx", matrices: []string{"x", "dy", "dx"},
		columns: map[string]int{"mean": floatSize, "a": floatSize, "b": floatSize, "e": floatSize},
		before: func(w *walk, vectors int) {
			mean, a = w.loadColumns("mean", vectors), w.loadColumns("a", vectors)
			b, e = w.loadColumns("b", vectors), w.loadColumns("e", vectors)
			if variant.relu {
				zero = w.zero()
			}
		},
		row: func(w *walk, vectors int, masked bool) {
			for v := range vectors {
				x, dy := w.load(w.element("x", v), masked), w.load(w.element("dy", v), masked)
				if variant.relu {
					dy = w.where(greater, w.load(w.element("y", v), masked), zero, dy)
				}
				w.asm.VSUBPS(mean[v], x, x)
				w.asm.VMULPS(b[v], x, x)
				w.asm.VADDPS(e[v], x, x)
				w.asm.VMULPS(a[v], dy, dy)
				w.asm.VADDPS(x, dy, dy)
				w.put(dy, "dx", v, masked)
			}
		},
	}
	doc := "computes dx = a·g + ((x − mean)·b + e) with g = dy"
	if variant.relu {
		w.matrices = append(w.matrices, "y")
		doc += " where y > 0 and else 0"
	}
	w.function(c, s, variant.name, "x, dy, y, dx, mean, a, b, e *float32", doc+"."+streamDoc(variant.stream))
}
