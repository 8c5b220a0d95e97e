package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reversePass goes over rows in reverse memory order, from the last vector to the first. It
// prefetches so many numbers ahead, at most a row. With non-temporal stores, rows are whole
// vectors.
type reversePass struct {
	rows
	last reg.GPVirtual // offset of the last vector of a row
	back reg.GPVirtual // from before the first vector of a row to the last one of the row above

	prepare func(w *reversePass)              // runs before everything
	vector  func(w *reversePass, masked bool) // computes a vector
}

// function writes a reverse pass.
func (w *reversePass) function(c *build.Context, s set, name, signature string, doc ...string) {
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
	w.startPrefetch()
	w.loadPointers()
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

// tailMask makes the mask of the columns behind the last whole vector, whose number is in CX. It is
// unused if there are none.
func (w *reversePass) tailMask() {
	if w.stream {
		return
	}
	tail := w.asm.GP64()
	w.asm.MOVQ(reg.RCX, tail)
	w.asm.ANDQ(operand.U8(w.lanes-1), tail)
	w.lastMask(tail)
}

// startPrefetch moves to the first vector to prefetch.
func (w *reversePass) startPrefetch() {
	w.next, w.left = w.asm.GP64(), w.asm.GP64()
	w.asm.MOVQ(w.at, w.next)
	w.asm.MOVQ(w.last, w.left)
	w.startPrefetchAt(w.advancePrefetch)
}

// advancePrefetch moves to the next vector to prefetch.
func (w *reversePass) advancePrefetch(same string) {
	w.asm.SUBQ(w.size(), w.next)
	w.asm.SUBQ(w.size(), w.left)
	w.asm.JNS(operand.LabelRef(same))
	w.asm.SUBQ(w.back, w.next)
	w.asm.MOVQ(w.last, w.left)
	w.asm.Label(same)
}

// step computes a vector and moves to the one before. The sign tells whether that is in the same
// row.
func (w *reversePass) step(name string, masked bool) {
	w.prefetch()
	w.advancePrefetch(name + "Same")
	w.vector(w, masked)
	w.asm.SUBQ(w.size(), w.at)
	w.asm.SUBQ(w.size(), w.j)
}
