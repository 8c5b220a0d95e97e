package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// sumSize is the size of a float64.
const sumSize = 8

// centredSums writes the first pass of a normalization, or of a gradient. For every column, from
// the first row to the last, moments writes the sums of d = x − shift and of d², and gradSums those
// of g = dy and of g·(x − mean). d is rounded to float64 (it is exact unless its operands differ by
// a factor of 2²⁹), products and their additions are rounded together.
func centredSums(c *build.Context, s set, gradient bool) {
	name, signature, centre, matrices := "moments", "x, shift *float32, s1, s2 *float64", "shift", []string{"x"}
	doc := "adds x − shift to s1, and its square to s2"
	if gradient {
		name, signature, centre = "gradSums", "x, dy, y, dz, mean *float32, s1, s2 *float64", "mean"
		doc, matrices = "adds g = dy to s1, and g·(x − mean) to s2", []string{"x", "dy"}
	}
	var middle, s1, s2 [][2]reg.VecVirtual
	w := &columnPass{
		matrices: matrices, columns: map[string]int{centre: floatSize, "s1": sumSize, "s2": sumSize},
		before: func(w *columnPass, vectors int) {
			middle, s1, s2 = w.widened(centre, vectors), w.loadSums("s1", vectors), w.loadSums("s2", vectors)
		},
		row: func(w *columnPass, vectors int, masked bool) {
			for v := range vectors {
				var g [2]reg.VecVirtual
				if gradient {
					g = w.numberWide(w.element("dy", v), masked)
				}
				for i, x := range w.numberWide(w.element("x", v), masked) {
					if !gradient {
						g[i] = x
					}
					w.asm.VSUBPD(middle[v][i], x, x)
					w.asm.VADDPD(g[i], s1[v][i], s1[v][i])
					w.asm.VFMADD231PD(g[i], x, s2[v][i])
				}
			}
		},
		after: func(w *columnPass, _ int) {
			w.storeSums("s1", s1)
			w.storeSums("s2", s2)
		},
	}
	w.function(c, s, name, signature, doc+", for every column. There is at least one row.")
}

// sums writes the sums for a mean.
func sums(c *build.Context, s set) {
	var s1 [][2]reg.VecVirtual
	w := &columnPass{
		matrices: []string{"x"}, columns: map[string]int{"s1": sumSize},
		before: func(w *columnPass, vectors int) { s1 = w.loadSums("s1", vectors) },
		row: func(w *columnPass, vectors int, masked bool) {
			for v := range vectors {
				for i, x := range w.numberWide(w.element("x", v), masked) {
					w.asm.VADDPD(x, s1[v][i], s1[v][i])
				}
			}
		},
		after: func(w *columnPass, _ int) { w.storeSums("s1", s1) },
	}
	w.function(c, s, "sums", "x *float32, s1 *float64", "adds every row of x to s1. There is at least one row.")
}

// reluSum writes gradSums with g = dy if y > 0, else 0, and may store g to dz. It reads three
// matrices, and so goes over rows in memory order.
func reluSum(c *build.Context, s set, dz, stream bool) {
	var zero reg.VecVirtual
	m := &rows{stream: stream, output: "dz", matrices: []string{"x", "dy", "y"}, columns: []string{"mean", "s1", "s2"}}
	m.prepare = func() { zero = m.zero() }
	m.vector = func(masked bool) {
		g := m.element("dy", masked)
		g = m.where(greater, m.element("y", masked), zero, g)
		if dz {
			m.put(g, masked)
		}
		wide, mean := m.widen(g), m.loadWide(m.column("mean"), false)
		for i, x := range m.numberWide(m.place("x"), masked) {
			s1, s2 := m.new(), m.new()
			m.asm.VADDPD(m.sum("s1", i), wide[i], s1)
			m.asm.VMOVUPD(s1, m.sum("s1", i))
			m.asm.VSUBPD(mean[i], x, x)
			m.asm.VMOVUPD(m.sum("s2", i), s2)
			m.asm.VFMADD231PD(wide[i], x, s2)
			m.asm.VMOVUPD(s2, m.sum("s2", i))
		}
	}
	name, doc := "gradSums", "adds g, which is dy if y > 0, else 0, to s1, and g·(x − mean) to s2, for every column."
	if dz {
		m.matrices = append(m.matrices, "dz")
		name, doc = name+"Add", doc+" It writes g to dz."
	}
	m.forward(c, s, name+"ReLU"+streamName(stream), "x, dy, y, dz, mean *float32, s1, s2 *float64",
		doc+" There is at least one row."+streamDoc(stream))
}

// fold writes the addition of the sums of a block to the totals.
func fold(c *build.Context, s set) {
	k := &code{asm: c, set: s}
	begin(c, "fold"+s.name, "func(n int, total, part *float64)",
		"adds part to total and clears part. n is a positive multiple of 16.")
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
	asmgen.End(c)
}

// fence writes the fence that must follow non-temporal stores.
func fence(c *build.Context, set string) {
	begin(c, "storeFence"+set, "func()", "waits for all stores, including non-temporal ones.")
	c.SFENCE()
	c.RET()
}
