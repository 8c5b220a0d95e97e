package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bandwidthStep is how many numbers of each vector are read or written at once: four cache lines.
const bandwidthStep = 64

// bandwidth writes a loop that only reads and writes: the limit for passes over vectors.
func bandwidth(e *emitter) {
	e.begin("bandwidth", "func(v **float32, reads, all, begin, end, ahead int)",
		"reads v[k] for k < reads, at least one, and writes the bits that any of them has to the others, for the "+
			"numbers from begin to end, with non-temporal stores. It prefetches so many numbers ahead. All vectors "+
			"begin a cache line, and end-begin is a positive multiple of 64.")
	v, reads, all := e.argument("v"), e.argument("reads"), e.argument("all")
	at, end, ahead := e.argument("begin"), e.argument("end"), e.argument("ahead")
	k, from, next := e.asm.GP64(), e.asm.GP64(), e.asm.GP64()
	acc := e.vectors(bandwidthStep / e.lanes)
	operandAt := func() { e.asm.MOVQ(operand.Mem{Base: v, Index: k, Scale: 8}, from) }
	place := func(i int) operand.Mem { return operand.Mem{Base: from, Index: at, Scale: 4, Disp: 4 * e.lanes * i} }
	e.asm.Label("lines")
	e.asm.LEAQ(operand.Mem{Base: at, Index: ahead, Scale: 1}, next)
	for i := range acc {
		e.asm.VXORPS(acc[i].AsX(), acc[i].AsX(), acc[i].AsX())
	}
	e.asm.XORQ(k, k)
	e.asm.Label("read")
	operandAt()
	for line := range bandwidthStep / 16 {
		e.asm.PREFETCHT1(operand.Mem{Base: from, Index: next, Scale: 4, Disp: 64 * line})
	}
	for i := range acc {
		e.or(place(i), acc[i])
	}
	e.asm.INCQ(k)
	e.asm.CMPQ(k, reads)
	e.asm.JLT(operand.LabelRef("read"))
	e.asm.Label("write")
	e.asm.CMPQ(k, all)
	e.asm.JGE(operand.LabelRef("written"))
	operandAt()
	for i := range acc {
		e.asm.VMOVNTPS(acc[i], place(i))
	}
	e.asm.INCQ(k)
	e.asm.JMP(operand.LabelRef("write"))
	e.asm.Label("written")
	e.asm.ADDQ(operand.U8(bandwidthStep), at)
	e.asm.CMPQ(at, end)
	e.asm.JLT(operand.LabelRef("lines"))
	e.asm.SFENCE()
	e.end()
}

// or sets bits of x.
func (e *emitter) or(m operand.Mem, x reg.VecVirtual) {
	if e.isAVX512 {
		e.asm.VPORD(m, x, x)
	} else {
		e.asm.VORPS(m, x, x)
	}
}
