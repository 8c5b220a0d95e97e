package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// walk is a kernel over rows×cols numbers of matrices whose rows are stride apart. It takes the
// columns in groups of a few vectors and goes down all rows for each, so that what belongs to a
// column stays in registers. The last columns come one vector at a time. It asks the cache for what
// lies ahead numbers further on (or behind, if that is negative), which is not read.
type walk struct {
	code
	matrices []string // parameters, of float32
	// parameters with a number for every column, by its size in bytes; there are whole vectors of
	// them
	columns  map[string]int
	pointers map[string]reg.GPVirtual
	at       reg.GPVirtual // the row, in bytes
	next     reg.GPVirtual // what to ask for, in bytes

	before func(w *walk, vectors int)              // loads what belongs to the columns
	row    func(w *walk, vectors int, masked bool) // does a row
	after  func(w *walk, vectors int)              // stores what belongs to the columns
}

// shape are the parameters that every walk begins with.
const shape = "stride, rows, cols, ahead int, "

// function writes a walk.
func (w *walk) function(c *build.Context, s set, name, signature string, doc ...string) {
	w.code = code{asm: c, set: s}
	begin(c, name+s.name, "func("+shape+signature+")", doc...)
	w.pointers = map[string]reg.GPVirtual{}
	for _, p := range w.matrices {
		w.pointers[p] = w.pointer(p)
	}
	for _, p := range sorted(w.columns) {
		w.pointers[p] = w.pointer(p)
	}
	stride, end, cols := w.bytes("stride"), w.pointer("rows"), w.pointer("cols")
	w.next = w.bytes("ahead")
	w.asm.IMULQ(stride, end)
	w.at = w.asm.GP64()
	group := w.wide * w.lanes
	w.asm.Label("wide")
	w.asm.CMPQ(cols, operand.U32(uint32(group)))
	w.asm.JLT(operand.LabelRef("narrow"))
	w.down("wideRows", w.wide, false, stride, end)
	w.advance(group)
	w.asm.SUBQ(operand.U32(uint32(group)), cols)
	w.asm.JMP(operand.LabelRef("wide"))
	w.asm.Label("narrow")
	w.asm.CMPQ(cols, operand.U8(0))
	w.asm.JLE(operand.LabelRef("done"))
	last, lanes := w.asm.GP64(), w.asm.GP64()
	w.asm.MOVQ(cols, last)
	w.asm.MOVQ(operand.U32(uint32(w.lanes)), lanes)
	w.asm.CMPQ(cols, lanes)
	w.asm.CMOVQGT(lanes, last)
	w.lastMask(last)
	w.down("narrowRows", 1, true, stride, end)
	w.advance(w.lanes)
	w.asm.SUBQ(operand.U8(w.lanes), cols)
	w.asm.JMP(operand.LabelRef("narrow"))
	w.asm.Label("done")
	w.asm.VZEROUPPER()
	w.asm.RET()
}

// begin starts a function.
func begin(c *build.Context, name, signature string, doc ...string) {
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr(signature)
	c.Pragma("noescape")
	c.Doc(append([]string{fmt.Sprintf("%s %s", name, doc[0])}, doc[1:]...)...)
}

// down goes through the rows.
func (w *walk) down(label string, vectors int, masked bool, stride, end reg.GPVirtual) {
	w.before(w, vectors)
	w.asm.XORQ(w.at, w.at)
	hop := w.begins(label, vectors, stride)
	w.asm.Label(label)
	w.ask(vectors)
	w.row(w, vectors, masked)
	w.asm.ADDQ(hop, w.next)
	w.asm.ADDQ(stride, w.at)
	w.asm.CMPQ(w.at, end)
	w.asm.JLT(operand.LabelRef(label))
	if w.after != nil {
		w.after(w, vectors)
	}
}

// begins sets where a group of columns begins to ask, and returns how far it goes on with each row.
// Whole rows lie one behind the other, and what lies ahead of them is asked for in the order of
// memory, which the second cache notices, and fetches more by itself; parts of rows ask for the
// same parts ahead.
func (w *walk) begins(label string, vectors int, stride reg.GPVirtual) (hop reg.GPVirtual) {
	hop = w.bytes("cols")
	w.asm.CMPQ(hop, stride)
	w.asm.MOVQ(stride, hop)
	w.asm.JEQ(operand.LabelRef(label + "Whole"))
	w.asm.Load(w.asm.Param("ahead"), w.next)
	w.asm.SHLQ(operand.U8(2), w.next)
	w.asm.JMP(operand.LabelRef(label))
	w.asm.Label(label + "Whole")
	w.asm.MOVQ(operand.U32(uint32(vectors*w.lanes*floatSize)), hop)
	return hop
}

// ask asks for what lies ahead: the processor follows few rows at a time by itself, and not beyond
// a page. It asks the second cache, which can wait for more lines at a time than the first.
func (w *walk) ask(vectors int) {
	for _, m := range w.matrices {
		for at := 0; at < vectors*w.lanes*floatSize; at += lineSize {
			w.asm.PREFETCHT1(operand.Mem{Base: w.pointers[m], Index: w.next, Scale: 1, Disp: at})
		}
	}
}

// advance moves all pointers by n columns, and what is asked for not at all.
func (w *walk) advance(n int) {
	w.asm.SUBQ(operand.U32(uint32(n*floatSize)), w.next)
	for _, p := range w.matrices {
		w.asm.ADDQ(operand.U32(uint32(n*floatSize)), w.pointers[p])
	}
	for _, p := range sorted(w.columns) {
		w.asm.ADDQ(operand.U32(uint32(n*w.columns[p])), w.pointers[p])
	}
}

// element is the place of vector v of the row in a matrix.
func (w *walk) element(matrix string, v int) operand.Mem {
	return operand.Mem{Base: w.pointers[matrix], Index: w.at, Scale: 1, Disp: v * w.lanes * floatSize}
}

// column is the place of the numbers that belong to vector v.
func (w *walk) column(name string, v int) operand.Mem {
	return operand.Mem{Base: w.pointers[name], Disp: v * w.lanes * w.columns[name]}
}

// loadSums returns the vectors of a parameter of float64.
func (w *walk) loadSums(name string, vectors int) [][2]reg.VecVirtual {
	all := make([][2]reg.VecVirtual, vectors)
	for v := range all {
		for i := range all[v] {
			all[v][i] = w.new()
			w.asm.VMOVUPD(w.column(name, v).Offset(i*w.lanes/2*sumSize), all[v][i])
		}
	}
	return all
}

func (w *walk) storeSums(name string, all [][2]reg.VecVirtual) {
	for v := range all {
		for i, s := range all[v] {
			w.asm.VMOVUPD(s, w.column(name, v).Offset(i*w.lanes/2*sumSize))
		}
	}
}

// widened returns the vectors of a parameter of float32 in float64.
func (w *walk) widened(name string, vectors int) [][2]reg.VecVirtual {
	all := make([][2]reg.VecVirtual, vectors)
	for v := range all {
		all[v] = w.loadWide(w.column(name, v), false)
	}
	return all
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
