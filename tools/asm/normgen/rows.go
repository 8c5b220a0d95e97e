package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// rows is a kernel that goes over rows×cols numbers of matrices whose rows are stride apart, vector
// by vector in memory order ([rows.forward]) or in reverse ([rows.reverse]). Values of a column are
// read again in every row, from the first-level cache. It prefetches so many numbers ahead.
type rows struct {
	code
	matrices []string // parameters, of float32
	// parameters with one float32 or float64 for every column, padded to whole vectors
	columns  []string
	pointers map[string]reg.GPVirtual
	at, j    reg.GPVirtual // offsets of the vector in a matrix, and in its row, in bytes
	next     reg.GPVirtual // offset of the vector to prefetch
	left     reg.GPVirtual // the bytes of its row from there on, in the order of the pass
	stream   bool          // non-temporal stores
	output   string

	prepare func()            // runs before everything
	vector  func(masked bool) // computes a vector

	step func(by, offset operand.Op) // moves an offset in the order of the pass
	same func(label operand.Op)      // jumps if left is still in the row
	gap  reg.GPVirtual               // from behind the last vector of a row to the first of the next
	row  operand.Op                  // left at the beginning of a row
}

// begin starts a function.
func (r *rows) begin(c *build.Context, s set, name, signature, doc string) {
	r.code = code{asm: c, set: s}
	begin(c, s.function(name), "func("+shape+signature+")", doc)
}

// forward writes a pass in memory order. Sums of columns are in the first-level cache and are added
// to in every row; if several matrices are read, that costs less than going down columns, which does
// not read memory in its order.
func (r *rows) forward(c *build.Context, s set, name, signature, doc string) {
	r.begin(c, s, name, signature, doc)
	size := c.AllocLocal(8) // of all vectors of a row
	cols, tail := r.pointer("cols"), c.GP64()
	c.MOVQ(cols, tail)
	c.ANDQ(operand.U8(r.lanes-1), tail)
	r.lastMask(tail)
	end := r.pointer("rows")
	c.ADDQ(operand.U8(r.lanes-1), cols)
	c.ANDQ(operand.I8(-r.lanes), cols)
	c.SHLQ(operand.U8(2), cols)
	c.MOVQ(cols, size)
	r.gap = r.matrixBytes("stride")
	c.IMULQ(r.gap, end)
	r.inMatrix(cols)
	c.SUBQ(cols, r.gap)
	r.row, r.step, r.same = size, c.ADDQ, c.JG
	r.next, r.left = c.GP64(), c.GP64()
	c.XORQ(r.next, r.next)
	r.startPrefetch()
	whole := r.pointer("cols")
	c.ANDQ(operand.I8(-r.lanes), whole)
	c.SHLQ(operand.U8(2), whole)
	r.loadPointers()
	r.prepare()
	r.at, r.j = c.GP64(), c.GP64()
	c.XORQ(r.at, r.at)
	c.Label("row")
	c.XORQ(r.j, r.j)
	c.CMPQ(r.j, whole)
	c.JGE(operand.LabelRef("part"))
	c.Label("whole")
	r.compute("vector", false)
	c.CMPQ(r.j, whole)
	c.JLT(operand.LabelRef("whole"))
	c.Label("part")
	c.CMPQ(r.j, size)
	c.JGE(operand.LabelRef("below"))
	r.compute("partVector", true)
	c.Label("below")
	c.ADDQ(r.gap, r.at)
	c.CMPQ(r.at, end)
	c.JLT(operand.LabelRef("row"))
	asmgen.End(c)
}

// reverse writes a pass from the last vector to the first. It prefetches at most a row ahead. With
// non-temporal stores, rows are whole vectors.
func (r *rows) reverse(c *build.Context, s set, name, signature, doc string) {
	r.begin(c, s, name, signature, doc)
	last := r.pointer("cols")
	c.MOVQ(last, reg.RCX)
	if !r.stream { // the columns behind the last whole vector
		tail := c.GP64()
		c.MOVQ(reg.RCX, tail)
		c.ANDQ(operand.U8(r.lanes-1), tail)
		r.lastMask(tail)
	}
	r.gap, r.at = r.matrixBytes("stride"), r.pointer("rows")
	c.DECQ(last)
	c.ANDQ(operand.I8(-r.lanes), last)
	c.SHLQ(operand.U8(2), last)
	c.DECQ(r.at)
	c.IMULQ(r.gap, r.at)
	behind := last
	if r.half {
		behind = c.GP64()
		c.MOVQ(last, behind)
		r.inMatrix(behind)
	}
	c.ADDQ(behind, r.at)
	c.SUBQ(behind, r.gap)
	c.SUBQ(r.matrixSize(), r.gap)
	r.row, r.step, r.same = last, c.SUBQ, c.JNS
	r.next, r.left = c.GP64(), c.GP64()
	c.MOVQ(r.at, r.next)
	r.startPrefetch()
	r.loadPointers()
	r.prepare()
	r.j = c.GP64()
	c.Label("row")
	c.MOVQ(last, r.j)
	if !r.stream {
		c.TESTQ(operand.U32(uint32(r.lanes-1)), r.address("cols"))
		c.JEQ(operand.LabelRef("whole"))
		r.compute("part", true)
		c.JS(operand.LabelRef("above"))
	}
	c.Label("whole")
	r.compute("vector", false)
	c.JNS(operand.LabelRef("whole"))
	c.Label("above")
	c.SUBQ(r.gap, r.at)
	c.JNS(operand.LabelRef("row"))
	asmgen.End(c)
}

// size returns the size of a vector in bytes.
func (r *rows) size() operand.U8 { return operand.U8(r.lanes * floatSize) }

// matrixSize returns the size of a vector of a matrix in bytes, and inMatrix turns bytes of float32
// numbers into those.
func (r *rows) matrixSize() operand.U8 { return operand.U8(r.lanes * r.numberSize()) }

func (r *rows) inMatrix(bytes reg.GPVirtual) {
	if r.half {
		r.asm.SHRQ(operand.U8(1), bytes)
	}
}

// loadPointers loads the addresses of matrices and columns.
func (r *rows) loadPointers() {
	r.pointers = map[string]reg.GPVirtual{}
	for _, p := range append(r.matrices[:len(r.matrices):len(r.matrices)], r.columns...) {
		r.pointers[p] = r.pointer(p)
	}
}

// startPrefetch moves next, at the first vector, to the first vector to prefetch.
func (r *rows) startPrefetch() {
	r.asm.MOVQ(r.row, r.left)
	ahead := r.pointer("ahead")
	r.asm.Label("ahead")
	r.asm.SUBQ(operand.U8(r.lanes), ahead)
	r.asm.JLT(operand.LabelRef("begin"))
	r.advancePrefetch("aheadSame")
	r.asm.JMP(operand.LabelRef("ahead"))
	r.asm.Label("begin")
}

// advancePrefetch moves to the next vector to prefetch.
func (r *rows) advancePrefetch(same string) {
	r.step(r.matrixSize(), r.next)
	r.asm.SUBQ(r.size(), r.left)
	r.same(operand.LabelRef(same))
	r.step(r.gap, r.next)
	r.asm.MOVQ(r.row, r.left)
	r.asm.Label(same)
}

// compute computes a vector and moves to the next. In reverse, the sign tells whether that is in the
// same row.
func (r *rows) compute(name string, masked bool) {
	for _, m := range r.matrices {
		if m != r.output {
			r.asm.PREFETCHT1(operand.Mem{Base: r.pointers[m], Index: r.next, Scale: 1})
		}
	}
	r.advancePrefetch(name + "Same")
	r.vector(masked)
	r.step(r.matrixSize(), r.at)
	r.step(r.size(), r.j)
}

// place returns the operand of the vector in a matrix, and element loads it.
func (r *rows) place(matrix string) operand.Mem {
	return operand.Mem{Base: r.pointers[matrix], Index: r.at, Scale: 1}
}

func (r *rows) element(matrix string, masked bool) reg.VecVirtual {
	return r.number(r.place(matrix), masked)
}

// column returns the operand of the float32 values of the columns of the vector.
func (r *rows) column(name string) operand.Mem {
	return operand.Mem{Base: r.pointers[name], Index: r.j, Scale: 1}
}

// sum returns the operand of half of the sums of the columns.
func (r *rows) sum(name string, half int) operand.Mem {
	return operand.Mem{Base: r.pointers[name], Index: r.j, Scale: 2, Disp: half * r.lanes / 2 * sumSize}
}

// put stores the vector of the output.
func (r *rows) put(x reg.VecVirtual, masked bool) { r.code.put(x, r.place(r.output), masked, r.stream) }
