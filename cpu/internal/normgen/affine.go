package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// affineVariant is a second pass of a normalization; stream means non-temporal stores.
type affineVariant struct {
	name              string
	add, relu, stream bool
}

var affines = []affineVariant{
	{"affine", false, false, false}, {"affineReLU", false, true, false}, {"affineAddReLU", true, true, false},
	{"affineStream", false, false, true}, {"affineReLUStream", false, true, true}, {"affineAddReLUStream", true, true,
		true},
}

// affine writes y = (x − mean)·scale + shift, then + z, then the larger of that and 0, each step
// rounded to float32.
func affine(c *build.Context, s set, variant affineVariant) {
	var zero reg.VecVirtual
	w := &reversePass{
		rows: rows{stream: variant.stream, output: "y", matrices: []string{"x", "y"}, columns: []string{"mean", "scale",
			"shift"}},
		prepare: func(w *reversePass) {
			if variant.relu {
				zero = w.zero()
			}
		},
		vector: func(w *reversePass, masked bool) {
			x := w.load(w.element("x"), masked)
			w.asm.VSUBPS(w.column("mean"), x, x)
			w.asm.VMULPS(w.column("scale"), x, x)
			w.asm.VADDPS(w.column("shift"), x, x)
			if variant.add {
				w.asm.VADDPS(w.load(w.element("z"), masked), x, x)
			}
			if variant.relu {
				x = w.where(notLE, x, zero, x)
			}
			w.put(x, "y", masked)
		},
	}
	doc := "computes y = (x − mean)·scale + shift"
	if variant.add {
		w.matrices = append(w.matrices, "z")
		doc += " + z"
	}
	if variant.relu {
		doc += ", and 0 where that is less"
	}
	w.function(c, s, variant.name, "x, z, y, mean, scale, shift *float32", doc+"."+streamDoc(variant.stream))
}

func streamDoc(stream bool) string {
	if stream {
		return " It uses non-temporal stores: all vectors of the output begin at multiples of their size."
	}
	return ""
}
