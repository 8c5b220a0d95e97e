//go:build !noasm

package cpu

import "sync"

func slideOver(l *slide, src, w, out, scratch []float32) {
	s := activeSet()
	if s == nil {
		slidePlain(l, src, w, out, scratch)
		return
	}
	slideOn(s, l, src, w, out, scratch)
}

func slideScratch(l *slide) int {
	s := activeSet()
	if s == nil {
		return slidePlainScratch(l)
	}
	return slidePackedScratch(l)
}

func sumOver(v *convolution, x, dy, dw, scratch []float32, part, of int) {
	s := activeSet()
	if s == nil {
		sumPlain(v, x, dy, dw, scratch, part, of)
		return
	}
	sumOn(s, v, x, dy, dw, scratch, part, of)
}

func sumScratch(v *convolution) int {
	s := activeSet()
	if s == nil {
		return sumPlainScratch(v)
	}
	return sumPackedScratch(v)
}

// tileArgsPool keeps arguments of micro-kernels: what is called through a variable cannot have them
// on the stack.
var tileArgsPool = sync.Pool{New: func() any { return new(tileArgs) }}

// widest is the width of the widest panel of any set.
const widest = 32

func roundUp(n, to int) int { return (n + to - 1) / to * to }
