package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sweep is a kernel over rows×cols numbers of matrices whose rows are stride apart, one vector after the other in the order of memory, from the
// last to the first. What belongs to a column is read again in every row, from the first cache. It asks the cache for what it will
// come to after ahead numbers, at most a row further on.
type sweep struct {
	code
	matrices []string // parameters, of float32
	columns  []string // parameters with a number of float32 for every column; there are whole vectors of them
	pointers map[string]reg.GPVirtual
	at, j    reg.GPVirtual // the vector in a matrix, and in its row, in bytes
	next     reg.GPVirtual // the vector to ask for
	left     reg.GPVirtual // what j is there
	last     reg.GPVirtual // where the last vector of a row begins
	back     reg.GPVirtual // from before the first vector of a row to the last one of the row above
	stream   bool          // outputs go past the cache; rows then are whole vectors
	output   string

	prepare func(w *sweep)              // comes before everything
	vector  func(w *sweep, masked bool) // does a vector
}

// size is that of a vector in bytes.
func (w *sweep) size() operand.U8 { return operand.U8(w.lanes * floatSize) }

// function writes a sweep.
func (w *sweep) function(c *build.Context, s set, name, signature string, doc ...string) {
	w.code = code{asm: c, set: s}
	begin(c, name+s.name, "func("+shape+signature+")", doc...)
	cols := w.pointer("cols")
	w.asm.MOVQ(cols, reg.RCX)
	w.tailMask()
	w.last, w.back, w.at = cols, w.bytes("stride"), w.pointer("rows")
	w.asm.DECQ(w.last)
	w.asm.ANDQ(operand.I8(-w.lanes), w.last)
	w.asm.SHLQ(operand.U8(2), w.last)
	w.asm.DECQ(w.at)
	w.asm.IMULQ(w.back, w.at)
	w.asm.ADDQ(w.last, w.at)
	w.asm.SUBQ(w.last, w.back)
	w.asm.SUBQ(w.size(), w.back)
	w.begins()
	w.pointers = map[string]reg.GPVirtual{}
	for _, p := range append(w.matrices[:len(w.matrices):len(w.matrices)], w.columns...) {
		w.pointers[p] = w.pointer(p)
	}
	w.prepare(w)
	w.j = w.asm.GP64()
	w.asm.Label("row")
	w.asm.MOVQ(w.last, w.j)
	if !w.stream {
		w.asm.TESTQ(operand.U32(uint32(w.lanes-1)), w.address("cols"))
		w.asm.JEQ(operand.LabelRef("whole"))
		w.step("part", true)
		w.asm.JS(operand.LabelRef("above"))
	}
	w.asm.Label("whole")
	w.step("vector", false)
	w.asm.JNS(operand.LabelRef("whole"))
	w.asm.Label("above")
	w.asm.SUBQ(w.back, w.at)
	w.asm.JNS(operand.LabelRef("row"))
	w.asm.VZEROUPPER()
	w.asm.RET()
}

// tailMask makes the mask of the columns behind the last whole vector, whose number is in CX. It is of no use where there are none.
func (w *sweep) tailMask() {
	if w.stream {
		return
	}
	tail := w.asm.GP64()
	w.asm.MOVQ(reg.RCX, tail)
	w.asm.ANDQ(operand.U8(w.lanes-1), tail)
	w.lastMask(tail)
}

// begins goes ahead to the vector to ask for at first.
func (w *sweep) begins() {
	w.next, w.left = w.asm.GP64(), w.asm.GP64()
	w.asm.MOVQ(w.at, w.next)
	w.asm.MOVQ(w.last, w.left)
	ahead := w.pointer("ahead")
	w.asm.Label("ahead")
	w.asm.SUBQ(operand.U8(w.lanes), ahead)
	w.asm.JLT(operand.LabelRef("begin"))
	w.further("aheadSame")
	w.asm.JMP(operand.LabelRef("ahead"))
	w.asm.Label("begin")
}

// further moves on what is asked for.
func (w *sweep) further(same string) {
	w.asm.SUBQ(w.size(), w.next)
	w.asm.SUBQ(w.size(), w.left)
	w.asm.JNS(operand.LabelRef(same))
	w.asm.SUBQ(w.back, w.next)
	w.asm.MOVQ(w.last, w.left)
	w.asm.Label(same)
}

// step does a vector and moves to the one before. The sign tells whether that is in the same row.
func (w *sweep) step(name string, masked bool) {
	for _, m := range w.matrices {
		if m != w.output {
			w.asm.PREFETCHT1(operand.Mem{Base: w.pointers[m], Index: w.next, Scale: 1})
		}
	}
	w.further(name + "Same")
	w.vector(w, masked)
	w.asm.SUBQ(w.size(), w.at)
	w.asm.SUBQ(w.size(), w.j)
}

// element is the place of the vector in a matrix.
func (w *sweep) element(matrix string) operand.Mem {
	return operand.Mem{Base: w.pointers[matrix], Index: w.at, Scale: 1}
}

// column is the place of the numbers that belong to the columns of the vector.
func (w *sweep) column(name string) operand.Mem {
	return operand.Mem{Base: w.pointers[name], Index: w.j, Scale: 1}
}

// put stores the vector.
func (w *sweep) put(x reg.VecVirtual, matrix string, masked bool) {
	w.code.put(x, w.element(matrix), masked, w.stream)
}
