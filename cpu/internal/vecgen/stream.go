package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// perLine is how many numbers a cache line holds.
const perLine = 16

// streamAhead is how many numbers before their turn those of so many vectors are asked for that are
// written past the caches: with many vectors at once the processor's own prefetching falls behind.
// All in all it is some forty lines, as many as the second cache can wait for.
func streamAhead(reads int) int {
	if reads > 3 {
		return 128
	}
	return 256
}

// lines calls body for each vector of n numbers from at on, a positive multiple of perLine. A line
// of everything that is read is asked for ahead. The fence at the end lets others read what body
// wrote past the caches. It changes at and n.
func (e *emitter) lines(label string, at, n reg.GPVirtual, read []reg.GPVirtual, body func(l loop)) {
	e.asm.Label(label)
	loop{e, at, streamAhead(len(read))}.ask(read)
	for v := range perLine / e.lanes {
		body(loop{e, at, v * e.lanes})
	}
	e.asm.ADDQ(operand.U8(perLine), at)
	e.asm.SUBQ(operand.U8(perLine), n)
	e.asm.JNZ(operand.LabelRef(label))
	e.asm.SFENCE()
}

// ask prefetches the cache line at a place of each vector. Those of several vectors go to the
// second cache, which can wait for more lines at a time than the first.
func (l loop) ask(vectors []reg.GPVirtual) {
	prefetch := l.asm.PREFETCHT0
	if len(vectors) > 1 {
		prefetch = l.asm.PREFETCHT1
	}
	for _, v := range vectors {
		prefetch(l.of(v, 0))
	}
}
