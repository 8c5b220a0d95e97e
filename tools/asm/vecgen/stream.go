package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// perLine is the number of float32 in a cache line.
const perLine = 16

// streamPrefetch is how many numbers ahead kernels with non-temporal stores prefetch so many
// vectors: with many vectors at once the hardware prefetcher falls behind. In all it is about forty
// lines, as many as the second-level cache can wait for.
func streamPrefetch(reads int) int {
	if reads > 3 {
		return 128
	}
	return 256
}

// lines calls body for each vector of n numbers from at on, a positive multiple of perLine. It
// prefetches all vectors that are read. The fence at the end makes non-temporal stores visible to
// others. It changes at and n.
func (e *emitter) lines(label string, at, n reg.GPVirtual, read []reg.GPVirtual, body func(l loop)) {
	e.asm.Label(label)
	loop{e, at, streamPrefetch(len(read))}.prefetch(read)
	for v := range perLine / e.lanes {
		body(loop{e, at, v * e.lanes})
	}
	e.asm.ADDQ(operand.U8(perLine), at)
	e.asm.SUBQ(operand.U8(perLine), n)
	e.asm.JNZ(operand.LabelRef(label))
	e.asm.SFENCE()
}

// prefetch prefetches the cache line at the position of each vector. With several vectors it uses
// the second-level cache, which can wait for more lines at a time than the first.
func (l loop) prefetch(vectors []reg.GPVirtual) {
	prefetch := l.asm.PREFETCHT0
	if len(vectors) > 1 {
		prefetch = l.asm.PREFETCHT1
	}
	for _, v := range vectors {
		prefetch(l.of(v, 0))
	}
}
