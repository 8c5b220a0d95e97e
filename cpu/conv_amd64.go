//go:build !noasm

package cpu

import "sync"

func slideOver(l *slide, src, w, out, scratch []float32) {
	if len(tileSets) == 0 {
		slidePlain(l, src, w, out, scratch)
		return
	}
	tileSets[0].slide(l, src, w, out, scratch)
}

func slideScratch(l *slide) int {
	if len(tileSets) == 0 {
		return slidePlainScratch(l)
	}
	return slidePackedScratch(l)
}

func sumOver(v *convolution, x, dy, dw, scratch []float32, part, of int) {
	if len(tileSets) == 0 {
		sumPlain(v, x, dy, dw, scratch, part, of)
		return
	}
	tileSets[0].sum(v, x, dy, dw, scratch, part, of)
}

func sumScratch(v *convolution) int {
	if len(tileSets) == 0 {
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
