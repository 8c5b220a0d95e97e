package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows holds what kernels share that go over rows×cols numbers of matrices whose rows are stride
// apart, vector by vector in memory order or in reverse: [rowPass] and [reversePass]. Values of a
// column are read again in every row, from the first-level cache.
type rows struct {
	code
	matrices []string // parameters, of float32
	// parameters with one float32 or float64 for every column, padded to whole vectors
	columns  []string
	pointers map[string]reg.GPVirtual
	at, j    reg.GPVirtual // offsets of the vector in a matrix, and in its row, in bytes
	next     reg.GPVirtual // offset of the vector to prefetch
	left     reg.GPVirtual // position of next in its row
	stream   bool          // non-temporal stores
	output   string
}

// size returns the size of a vector in bytes.
func (r *rows) size() operand.U8 { return operand.U8(r.lanes * floatSize) }

// loadPointers loads the addresses of matrices and columns.
func (r *rows) loadPointers() {
	r.pointers = map[string]reg.GPVirtual{}
	for _, p := range append(r.matrices[:len(r.matrices):len(r.matrices)], r.columns...) {
		r.pointers[p] = r.pointer(p)
	}
}

// startPrefetchAt moves next to the first vector to prefetch, by steps of advancePrefetch.
func (r *rows) startPrefetchAt(advancePrefetch func(same string)) {
	ahead := r.pointer("ahead")
	r.asm.Label("ahead")
	r.asm.SUBQ(operand.U8(r.lanes), ahead)
	r.asm.JLT(operand.LabelRef("begin"))
	advancePrefetch("aheadSame")
	r.asm.JMP(operand.LabelRef("ahead"))
	r.asm.Label("begin")
}

// prefetch prefetches the next vector of all matrices that are read.
func (r *rows) prefetch() {
	for _, m := range r.matrices {
		if m != r.output {
			r.asm.PREFETCHT1(operand.Mem{Base: r.pointers[m], Index: r.next, Scale: 1})
		}
	}
}

// element returns the operand of the vector in a matrix.
func (r *rows) element(matrix string) operand.Mem {
	return operand.Mem{Base: r.pointers[matrix], Index: r.at, Scale: 1}
}

// column returns the operand of the float32 values of the columns of the vector.
func (r *rows) column(name string) operand.Mem {
	return operand.Mem{Base: r.pointers[name], Index: r.j, Scale: 1}
}

// put stores the vector.
func (r *rows) put(x reg.VecVirtual, matrix string, masked bool) {
	r.code.put(x, r.element(matrix), masked, r.stream)
}
