package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// trafficStep is how many numbers of each vector are moved at once: four lines.
const trafficStep = 64

// traffic writes the reading and writing alone, the limit for passes over vectors.
func traffic(e *emitter) {
	e.begin("traffic", "func(v **float32, reads, all, begin, end, ahead int)",
		"reads v[k] for k < reads, at least one, and writes the bits that any of them has to the others, for the numbers from begin to end, past the",
		"caches. What is read is asked for so many numbers ahead. All vectors begin a cache line, and end-begin is a positive multiple of 64.")
	v, reads, all, at, end, ahead := e.argument("v"), e.argument("reads"), e.argument("all"), e.argument("begin"), e.argument("end"), e.argument("ahead")
	k, from, next := e.GP64(), e.GP64(), e.GP64()
	acc := make(vectors, trafficStep/e.lanes)
	for i := range acc {
		acc[i] = e.vector()
	}
	operandAt := func() { e.MOVQ(operand.Mem{Base: v, Index: k, Scale: 8}, from) }
	place := func(i int) operand.Mem { return operand.Mem{Base: from, Index: at, Scale: 4, Disp: 4 * e.lanes * i} }
	e.Label("lines")
	e.LEAQ(operand.Mem{Base: at, Index: ahead, Scale: 1}, next)
	for i := range acc {
		e.VXORPS(acc[i].AsX(), acc[i].AsX(), acc[i].AsX())
	}
	e.XORQ(k, k)
	e.Label("read")
	operandAt()
	for line := range trafficStep / 16 {
		e.PREFETCHT1(operand.Mem{Base: from, Index: next, Scale: 4, Disp: 64 * line})
	}
	for i := range acc {
		e.or(place(i), acc[i])
	}
	e.INCQ(k)
	e.CMPQ(k, reads)
	e.JLT(operand.LabelRef("read"))
	e.Label("write")
	e.CMPQ(k, all)
	e.JGE(operand.LabelRef("written"))
	operandAt()
	for i := range acc {
		e.VMOVNTPS(acc[i], place(i))
	}
	e.INCQ(k)
	e.JMP(operand.LabelRef("write"))
	e.Label("written")
	e.ADDQ(operand.U8(trafficStep), at)
	e.CMPQ(at, end)
	e.JLT(operand.LabelRef("lines"))
	e.SFENCE()
	e.end()
}

// or sets bits of x.
func (e *emitter) or(m operand.Mem, x reg.VecVirtual) {
	if e.isAVX512 {
		e.VPORD(m, x, x)
	} else {
		e.VORPS(m, x, x)
	}
}
