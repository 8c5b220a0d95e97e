package main

import (
	"maps"
	"slices"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// columnPass is a kernel over rows×cols numbers of matrices whose rows are stride apart. It goes
// down all rows for a few vectors of columns at a time, so that values of a column stay in
// registers. The last columns are computed one vector at a time. It prefetches so many numbers
// ahead (or behind, if that is negative).
type columnPass struct {
	code
	matrices []string // parameters, of float32
	// parameters with one number for every column, by its size in bytes, padded to whole vectors
	columns  map[string]int
	pointers map[string]reg.GPVirtual
	at       reg.GPVirtual // offset of the row, in bytes
	next     reg.GPVirtual // offset to prefetch, in bytes

	before func(w *columnPass, vectors int)              // loads the values of the columns
	row    func(w *columnPass, vectors int, masked bool) // computes a row
	after  func(w *columnPass, vectors int)              // stores the values of the columns
}

// shape are the first parameters of every pass.
const shape = "stride, rows, cols, ahead int, "

// function writes a column pass.
func (w *columnPass) function(c *build.Context, s set, name, signature, doc string) {
	w.code = code{asm: c, set: s}
	begin(c, s.function(name), "func("+shape+signature+")", doc)
	w.pointers = map[string]reg.GPVirtual{}
	for _, p := range w.matrices {
		w.pointers[p] = w.pointer(p)
	}
	for _, p := range sorted(w.columns) {
		w.pointers[p] = w.pointer(p)
	}
	stride, end, cols := w.matrixBytes("stride"), w.pointer("rows"), w.pointer("cols")
	w.next = w.matrixBytes("ahead")
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
	asmgen.End(c)
}

// begin starts a function.
func begin(c *build.Context, name, signature, doc string) {
	asmgen.Begin(c, name, doc)
	c.SignatureExpr(signature)
}

// down goes through the rows.
func (w *columnPass) down(label string, vectors int, masked bool, stride, end reg.GPVirtual) {
	w.before(w, vectors)
	w.asm.XORQ(w.at, w.at)
	hop := w.startPrefetch(label, vectors, stride)
	w.asm.Label(label)
	w.prefetch(vectors)
	w.row(w, vectors, masked)
	w.asm.ADDQ(hop, w.next)
	w.asm.ADDQ(stride, w.at)
	w.asm.CMPQ(w.at, end)
	w.asm.JLT(operand.LabelRef(label))
	if w.after != nil {
		w.after(w, vectors)
	}
}

// startPrefetch sets where a group of columns begins to prefetch, and returns how far to advance
// with each row. If rows are contiguous, it prefetches in memory order, which the second-level
// cache's prefetcher recognizes; otherwise it prefetches the same columns ahead.
func (w *columnPass) startPrefetch(label string, vectors int, stride reg.GPVirtual) (hop reg.GPVirtual) {
	hop = w.matrixBytes("cols")
	w.asm.CMPQ(hop, stride)
	w.asm.MOVQ(stride, hop)
	w.asm.JEQ(operand.LabelRef(label + "Whole"))
	w.asm.Load(w.asm.Param("ahead"), w.next)
	w.asm.SHLQ(operand.U8(w.numberBits()), w.next)
	w.asm.JMP(operand.LabelRef(label))
	w.asm.Label(label + "Whole")
	w.asm.MOVQ(operand.U32(uint32(vectors*w.lanes*w.numberSize())), hop)
	return hop
}

// prefetch prefetches so many numbers ahead: the hardware prefetcher follows few rows at a time,
// and not beyond a page. It uses the second-level cache, which can wait for more lines at a time
// than the first.
func (w *columnPass) prefetch(vectors int) {
	for _, m := range w.matrices {
		for at := 0; at < vectors*w.lanes*w.numberSize(); at += lineSize {
			w.asm.PREFETCHT1(operand.Mem{Base: w.pointers[m], Index: w.next, Scale: 1, Disp: at})
		}
	}
}

// advance moves all pointers by n columns, except that for prefetches.
func (w *columnPass) advance(n int) {
	w.asm.SUBQ(operand.U32(uint32(n*w.numberSize())), w.next)
	for _, p := range w.matrices {
		w.asm.ADDQ(operand.U32(uint32(n*w.numberSize())), w.pointers[p])
	}
	for _, p := range sorted(w.columns) {
		w.asm.ADDQ(operand.U32(uint32(n*w.columns[p])), w.pointers[p])
	}
}

// element returns the operand of vector v of the row in a matrix.
func (w *columnPass) element(matrix string, v int) operand.Mem {
	return operand.Mem{Base: w.pointers[matrix], Index: w.at, Scale: 1, Disp: v * w.lanes * w.numberSize()}
}

// column returns the operand of the values that belong to vector v.
func (w *columnPass) column(name string, v int) operand.Mem {
	return operand.Mem{Base: w.pointers[name], Disp: v * w.lanes * w.columns[name]}
}

// loadSums returns the vectors of a parameter of float64.
func (w *columnPass) loadSums(name string, vectors int) [][2]reg.VecVirtual {
	all := make([][2]reg.VecVirtual, vectors)
	for v := range all {
		for i := range all[v] {
			all[v][i] = w.new()
			w.asm.VMOVUPD(w.column(name, v).Offset(i*w.lanes/2*sumSize), all[v][i])
		}
	}
	return all
}

func (w *columnPass) storeSums(name string, all [][2]reg.VecVirtual) {
	for v := range all {
		for i, s := range all[v] {
			w.asm.VMOVUPD(s, w.column(name, v).Offset(i*w.lanes/2*sumSize))
		}
	}
}

// widened returns the vectors of a parameter of float32 in float64.
func (w *columnPass) widened(name string, vectors int) [][2]reg.VecVirtual {
	all := make([][2]reg.VecVirtual, vectors)
	for v := range all {
		all[v] = w.loadWide(w.column(name, v), false)
	}
	return all
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
