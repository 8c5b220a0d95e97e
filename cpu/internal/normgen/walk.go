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

// walk is a kernel over rows×cols numbers of matrices whose rows are stride apart. It takes the columns in groups of a few vectors and
// goes down all rows for each, so that what belongs to a column stays in registers. The last columns come one vector at a time. It asks the
// cache for what lies ahead numbers further on (or behind, if that is negative), which is not read.
type walk struct {
	code
	matrices []string       // parameters, of float32
	columns  map[string]int // parameters with a number for every column, by its size in bytes; there are whole vectors of them
	pointers map[string]reg.GPVirtual
	at       reg.GPVirtual // the row, in bytes
	next     reg.GPVirtual // what to ask for, in bytes
	stream   bool          // outputs go past the cache
	output   string

	before func(w *walk, vectors int)              // loads what belongs to the columns
	row    func(w *walk, vectors int, masked bool) // does a row
	after  func(w *walk, vectors int)              // stores what belongs to the columns
}

// shape are the parameters that every walk begins with.
const shape = "stride, rows, cols, ahead int, "

// function writes a walk.
func (w *walk) function(c *build.Context, s set, name, signature string, doc ...string) {
	w.code = code{Context: c, set: s}
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
	w.IMULQ(stride, end)
	w.at = w.GP64()
	group := w.wide * w.lanes
	w.Label("wide")
	w.CMPQ(cols, operand.U32(uint32(group)))
	w.JLT(operand.LabelRef("narrow"))
	w.down("wideRows", w.wide, false, stride, end)
	w.advance(group)
	w.SUBQ(operand.U32(uint32(group)), cols)
	w.JMP(operand.LabelRef("wide"))
	w.Label("narrow")
	w.CMPQ(cols, operand.U8(0))
	w.JLE(operand.LabelRef("done"))
	last, lanes := w.GP64(), w.GP64()
	w.MOVQ(cols, last)
	w.MOVQ(operand.U32(uint32(w.lanes)), lanes)
	w.CMPQ(cols, lanes)
	w.CMOVQGT(lanes, last)
	w.lastMask(last)
	w.down("narrowRows", 1, true, stride, end)
	w.advance(w.lanes)
	w.SUBQ(operand.U8(w.lanes), cols)
	w.JMP(operand.LabelRef("narrow"))
	w.Label("done")
	w.VZEROUPPER()
	w.RET()
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
	w.XORQ(w.at, w.at)
	hop := w.begins(label, vectors, stride)
	w.Label(label)
	w.ask(vectors)
	w.row(w, vectors, masked)
	w.ADDQ(hop, w.next)
	w.ADDQ(stride, w.at)
	w.CMPQ(w.at, end)
	w.JLT(operand.LabelRef(label))
	if w.after != nil {
		w.after(w, vectors)
	}
}

// begins sets where a group of columns begins to ask, and returns how far it goes on with each row. Whole rows lie one behind the other, and what
// lies ahead of them is asked for in the order of memory, which the second cache notices, and fetches more by itself; parts of rows
// ask for the same parts ahead.
func (w *walk) begins(label string, vectors int, stride reg.GPVirtual) (hop reg.GPVirtual) {
	hop = w.bytes("cols")
	w.CMPQ(hop, stride)
	w.MOVQ(stride, hop)
	w.JEQ(operand.LabelRef(label + "Whole"))
	w.Load(w.Param("ahead"), w.next)
	w.SHLQ(operand.U8(2), w.next)
	w.JMP(operand.LabelRef(label))
	w.Label(label + "Whole")
	w.MOVQ(operand.U32(uint32(vectors*w.lanes*floatSize)), hop)
	return hop
}

// ask asks for what lies ahead: the processor follows few rows at a time by itself, and not beyond a page. It asks the second cache, which can
// wait for more lines at a time than the first.
func (w *walk) ask(vectors int) {
	for _, m := range w.matrices {
		if m == w.output {
			continue
		}
		for at := 0; at < vectors*w.lanes*floatSize; at += lineSize {
			w.PREFETCHT1(operand.Mem{Base: w.pointers[m], Index: w.next, Scale: 1, Disp: at})
		}
	}
}

// advance moves all pointers by n columns, and what is asked for not at all.
func (w *walk) advance(n int) {
	w.SUBQ(operand.U32(uint32(n*floatSize)), w.next)
	for _, p := range w.matrices {
		w.ADDQ(operand.U32(uint32(n*floatSize)), w.pointers[p])
	}
	for _, p := range sorted(w.columns) {
		w.ADDQ(operand.U32(uint32(n*w.columns[p])), w.pointers[p])
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

// loadColumns returns the vectors of a parameter of float32.
func (w *walk) loadColumns(name string, vectors int) []reg.VecVirtual {
	all := make([]reg.VecVirtual, vectors)
	for v := range all {
		all[v] = w.load(w.column(name, v), false)
	}
	return all
}

// loadSums returns the vectors of a parameter of float64.
func (w *walk) loadSums(name string, vectors int) [][2]reg.VecVirtual {
	all := make([][2]reg.VecVirtual, vectors)
	for v := range all {
		for i := range all[v] {
			all[v][i] = w.new()
			w.VMOVUPD(w.column(name, v).Offset(i*w.lanes/2*sumSize), all[v][i])
		}
	}
	return all
}

func (w *walk) storeSums(name string, all [][2]reg.VecVirtual) {
	for v := range all {
		for i, s := range all[v] {
			w.VMOVUPD(s, w.column(name, v).Offset(i*w.lanes/2*sumSize))
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
