package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sumSize is that of a float64.
const sumSize = 8

// moments writes the first pass of a normalisation: for every column the sums of d = x − shift and of d², from the first row to the last.
// d is rounded to float64 (it is exact unless its operands are 2²⁹ times apart), d² and its addition are rounded together.
func moments(c *build.Context, s set) {
	var shift, s1, s2 [][2]reg.VecVirtual
	w := &walk{
		matrices: []string{"x"}, columns: map[string]int{"shift": floatSize, "s1": sumSize, "s2": sumSize},
		before: func(w *walk, vectors int) {
			shift, s1, s2 = w.widened("shift", vectors), w.loadSums("s1", vectors), w.loadSums("s2", vectors)
		},
		row: func(w *walk, vectors int, masked bool) {
			for v := range vectors {
				for i, x := range w.loadWide(w.element("x", v), masked) {
					w.asm.VSUBPD(shift[v][i], x, x)
					w.asm.VADDPD(x, s1[v][i], s1[v][i])
					w.asm.VFMADD231PD(x, x, s2[v][i])
				}
			}
		},
		after: func(w *walk, _ int) {
			w.storeSums("s1", s1)
			w.storeSums("s2", s2)
		},
	}
	w.function(c, s, "moments", "x, shift *float32, s1, s2 *float64",
		"adds x − shift to s1, and its square to s2, for every column. There is at least one row.")
}

// sums writes the sum of a mean.
func sums(c *build.Context, s set) {
	var s1 [][2]reg.VecVirtual
	w := &walk{
		matrices: []string{"x"}, columns: map[string]int{"s1": sumSize},
		before: func(w *walk, vectors int) { s1 = w.loadSums("s1", vectors) },
		row: func(w *walk, vectors int, masked bool) {
			for v := range vectors {
				for i, x := range w.loadWide(w.element("x", v), masked) {
					w.asm.VADDPD(x, s1[v][i], s1[v][i])
				}
			}
		},
		after: func(w *walk, _ int) { w.storeSums("s1", s1) },
	}
	w.function(c, s, "sums", "x *float32, s1 *float64", "adds every row of x to s1. There is at least one row.")
}

// sumVariant is a first pass of a gradient.
type sumVariant struct {
	name             string
	relu, dz, stream bool
}

var gradSums = []sumVariant{
	{"gradSums", false, false, false}, {"gradSumsReLU", true, false, false},
	{"gradSumsAddReLU", true, true, false}, {"gradSumsAddReLUStream", true, true, true},
}

// gradSum writes the first pass of a gradient: for every column the sums of g and of g·(x − mean), where g is dy, or dy where y > 0
// and else 0, which it may keep in dz.
func gradSum(c *build.Context, s set, variant sumVariant) {
	var mean, s1, s2 [][2]reg.VecVirtual
	var zero reg.VecVirtual
	w := &walk{
		stream: variant.stream, output: "dz",
		matrices: []string{"x", "dy"}, columns: map[string]int{"mean": floatSize, "s1": sumSize, "s2": sumSize},
		before: func(w *walk, vectors int) {
			mean, s1, s2 = w.widened("mean", vectors), w.loadSums("s1", vectors), w.loadSums("s2", vectors)
			if variant.relu {
				zero = w.zero()
			}
		},
		row: func(w *walk, vectors int, masked bool) {
			for v := range vectors {
				var g [2]reg.VecVirtual
				if variant.relu {
					dy := w.load(w.element("dy", v), masked)
					dy = w.where(greater, w.load(w.element("y", v), masked), zero, dy)
					if variant.dz {
						w.put(dy, "dz", v, masked)
					}
					g = w.widen(dy)
				} else {
					g = w.loadWide(w.element("dy", v), masked)
				}
				for i, x := range w.loadWide(w.element("x", v), masked) {
					w.asm.VSUBPD(mean[v][i], x, x)
					w.asm.VADDPD(g[i], s1[v][i], s1[v][i])
					w.asm.VFMADD231PD(g[i], x, s2[v][i])
				}
			}
		},
		after: func(w *walk, _ int) {
			w.storeSums("s1", s1)
			w.storeSums("s2", s2)
		},
	}
	doc := "adds g = dy to s1, and g·(x − mean) to s2, for every column."
	if variant.relu {
		w.matrices = append(w.matrices, "y")
		doc = "adds g, dy where y > 0 and else 0, to s1, and g·(x − mean) to s2, for every column."
	}
	if variant.dz {
		w.matrices = append(w.matrices, "dz")
		doc += " It writes g to dz."
	}
	w.function(c, s, variant.name, "x, dy, y, dz, mean *float32, s1, s2 *float64", doc+" There is at least one row."+streamDoc(variant.stream))
}

// fold writes the addition of the sums of a block to those of all.
func fold(c *build.Context, s set) {
	k := &code{asm: c, set: s}
	begin(c, "fold"+s.name, "func(n int, total, part *float64)", "adds part to total and makes part zero. n is a multiple of 16, and not 0.")
	n, total, part, zero := k.pointer("n"), k.pointer("total"), k.pointer("part"), k.zero()
	k.asm.Label("again")
	v := k.new()
	k.asm.VMOVUPD(operand.Mem{Base: total}, v)
	k.asm.VADDPD(operand.Mem{Base: part}, v, v)
	k.asm.VMOVUPD(v, operand.Mem{Base: total})
	k.asm.VMOVUPD(zero, operand.Mem{Base: part})
	for _, p := range []reg.GPVirtual{total, part} {
		k.asm.ADDQ(operand.U8(s.lanes/2*sumSize), p)
	}
	k.asm.SUBQ(operand.U8(s.lanes/2), n)
	k.asm.JNZ(operand.LabelRef("again"))
	k.asm.VZEROUPPER()
	k.asm.RET()
}

// fence writes what must follow stores past the cache.
func fence(c *build.Context) {
	begin(c, "storeFence", "func()", "waits for all stores, those past the cache included.")
	c.SFENCE()
	c.RET()
}
