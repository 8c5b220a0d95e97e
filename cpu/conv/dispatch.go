package conv

import (
	"sync"

	"fspda/cpu/tile"
)

func correlate(l *correlation, src, w, out, scratch []float32) {
	if s := l.kind.Set(); s == nil {
		plainCorrelation(l, src, w, out, scratch)
	} else {
		packedCorrelation(s, l, src, w, out, scratch)
	}
}

func correlationScratch(l *correlation) int {
	if l.kind.Set() == nil {
		return plainScratch(l)
	}
	return packedScratch(l)
}

func weightGradient(v *convolution, x, dy, dw, scratch []float32, part, of int) {
	if s := v.kind.Set(); s == nil {
		plainWeightGradient(v, x, dy, dw, scratch, part, of)
	} else {
		packedWeightGradient(s, v, x, dy, dw, scratch, part, of)
	}
}

func weightGradScratch(v *convolution) int {
	if v.kind.Set() == nil {
		return plainWeightGradScratch(v)
	}
	return packedWeightGradScratch(v)
}

// tileArgsPool keeps arguments of micro-kernels: they are called through variables, so their
// arguments escape to the heap.
var tileArgsPool = sync.Pool{New: func() any { return new(tile.Args) }}

// maxPanel is the width of the widest panel of any set.
const maxPanel = 32

func roundUp(n, to int) int { return (n + to - 1) / to * to }
