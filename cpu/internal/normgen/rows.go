package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows is what kernels have in common that go over rows×cols numbers of matrices whose rows are
// stride apart, one vector after the other in the order of memory or against it: [march] and
// [sweep]. What belongs to a column is read again in every row, from the first cache.
type rows struct {
	code
	matrices []string // parameters, of float32
	// parameters with a number of float32 or float64 for every column; there are whole vectors of
	// them
	columns  []string
	pointers map[string]reg.GPVirtual
	at, j    reg.GPVirtual // the vector in a matrix, and in its row, in bytes
	next     reg.GPVirtual // the vector that the cache is asked for
	left     reg.GPVirtual // where next is in its row
	stream   bool          // outputs go past the cache
	output   string
}

// size is that of a vector in bytes.
func (r *rows) size() operand.U8 { return operand.U8(r.lanes * floatSize) }

// loadPointers loads the addresses of matrices and columns.
func (r *rows) loadPointers() {
	r.pointers = map[string]reg.GPVirtual{}
	for _, p := range append(r.matrices[:len(r.matrices):len(r.matrices)], r.columns...) {
		r.pointers[p] = r.pointer(p)
	}
}

// goAhead moves next to the vector that is asked for at first, by steps of further.
func (r *rows) goAhead(further func(same string)) {
	ahead := r.pointer("ahead")
	r.asm.Label("ahead")
	r.asm.SUBQ(operand.U8(r.lanes), ahead)
	r.asm.JLT(operand.LabelRef("begin"))
	further("aheadSame")
	r.asm.JMP(operand.LabelRef("ahead"))
	r.asm.Label("begin")
}

// ask asks the cache for the next vector of what is read.
func (r *rows) ask() {
	for _, m := range r.matrices {
		if m != r.output {
			r.asm.PREFETCHT1(operand.Mem{Base: r.pointers[m], Index: r.next, Scale: 1})
		}
	}
}

// element is the place of the vector in a matrix.
func (r *rows) element(matrix string) operand.Mem {
	return operand.Mem{Base: r.pointers[matrix], Index: r.at, Scale: 1}
}

// column is the place of the numbers of float32 that belong to the columns of the vector.
func (r *rows) column(name string) operand.Mem {
	return operand.Mem{Base: r.pointers[name], Index: r.j, Scale: 1}
}

// put stores the vector.
func (r *rows) put(x reg.VecVirtual, matrix string, masked bool) {
	r.code.put(x, r.element(matrix), masked, r.stream)
}
