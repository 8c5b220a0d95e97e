package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// affine writes y = (x − mean)·scale + shift, then + z, then the larger of that and 0, each step
// rounded to float32.
func affine(c *build.Context, s set, add, relu, stream bool) {
	var zero reg.VecVirtual
	w := &rows{stream: stream, output: "y", matrices: []string{"x", "y"}, columns: []string{"mean", "scale", "shift"}}
	w.prepare = func() {
		if relu {
			zero = w.zero()
		}
	}
	w.vector = func(masked bool) {
		x := w.element("x", masked)
		w.asm.VSUBPS(w.column("mean"), x, x)
		w.asm.VMULPS(w.column("scale"), x, x)
		w.asm.VADDPS(w.column("shift"), x, x)
		if add {
			w.asm.VADDPS(w.element("z", masked), x, x)
		}
		if relu {
			x = w.where(notLE, x, zero, x)
		}
		w.put(x, masked)
	}
	name, doc := "affine", "computes y = (x − mean)·scale + shift"
	if add {
		w.matrices = append(w.matrices, "z")
		name, doc = name+"Add", doc+" + z"
	}
	if relu {
		name, doc = name+"ReLU", doc+", and 0 where that is less"
	}
	w.reverse(c, s, name+streamName(stream), "x, z, y, mean, scale, shift *float32", doc+"."+streamDoc(stream))
}

// gradient writes dx = a·g + ((x − mean)·b + e), where g is dy, with a ReLU 0 unless y > 0, each
// step rounded to float32.
func gradient(c *build.Context, s set, relu, stream bool) {
	var zero reg.VecVirtual
	w := &rows{stream: stream, output: "dx", matrices: []string{"x", "dy", "dx"},
		columns: []string{"mean", "a", "b", "e"}}
	w.prepare = func() {
		if relu {
			zero = w.zero()
		}
	}
	w.vector = func(masked bool) {
		x, dy := w.element("x", masked), w.element("dy", masked)
		if relu {
			dy = w.where(greater, w.element("y", masked), zero, dy)
		}
		w.asm.VSUBPS(w.column("mean"), x, x)
		w.asm.VMULPS(w.column("b"), x, x)
		w.asm.VADDPS(w.column("e"), x, x)
		w.asm.VMULPS(w.column("a"), dy, dy)
		w.asm.VADDPS(x, dy, dy)
		w.put(dy, masked)
	}
	name, doc := "gradient", "computes dx = a·g + ((x − mean)·b + e) with g = dy"
	if relu {
		w.matrices = append(w.matrices, "y")
		name, doc = name+"ReLU", doc+" if y > 0, else 0"
	}
	w.reverse(c, s, name+streamName(stream), "x, dy, y, dx, mean, a, b, e *float32", doc+"."+streamDoc(stream))
}

// streamName is the end of the name of a kernel with non-temporal stores, and streamDoc of its doc.
func streamName(stream bool) string {
	if stream {
		return "Stream"
	}
	return ""
}

func streamDoc(stream bool) string {
	if stream {
		return " It uses non-temporal stores: all vectors of the output begin at multiples of their size."
	}
	return ""
}
