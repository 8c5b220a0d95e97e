//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package data

import (
	"slices"
	"unsafe"
)

const (
	rowTaps   = 4  // maximum number of source rows per assembly call
	rowBlock  = 32 // bytes per step
	groupSize = 4  // output pixels per step
)

// columnTable holds the weights of an axis for groups of four output pixels. A pixel takes two
// source pixels at a time: six adjacent values of the line, times six weights. For each group,
// where[·] is the byte offset of its four pixels in the line, and weights holds for each pair of
// taps the weights of pixels 0 and 2, then of pixels 1 and 3, in eight numbers each.
type columnTable struct {
	where   []uint32
	weights []int16
	groups  int
	pairs   int

	wide wideTable // used instead if it has groups
}

// pairOf is eight numbers for each of four pixels.
const pairOf = 8 * groupSize

func (t *columnTable) set(a *axis) {
	if t.wide.set(a); t.wide.groups > 0 || !resampleAssembly {
		return
	}
	t.groups = (len(a.start) + groupSize - 1) / groupSize
	t.pairs = int(max(1, slices.Max(a.count))+1) / 2
	t.where = grown(t.where, t.groups*groupSize)
	t.weights = grown(t.weights, t.groups*t.pairs*pairOf)
	for i := range t.where {
		group, lane := i/groupSize, (i&1)<<1|i>>1&1 // pixels 0, 2, 1, 3
		to := t.weights[group*t.pairs*pairOf+8*lane:]
		if i >= len(a.start) { // an unused pixel
			t.where[i] = 0
			continue
		}
		t.where[i] = uint32(6 * (a.start[i] - a.low))
		weight := a.weight[i*a.taps:][:a.taps]
		for p := range t.pairs {
			w0, w1 := uint64(0), uint64(0)
			if 2*p < len(weight) {
				w0 = uint64(weight[2*p])
			}
			if 2*p+1 < len(weight) {
				w1 = uint64(weight[2*p+1])
			}
			// six values: three times each weight
			pair := (*[2]uint64)(unsafe.Pointer(&to[p*pairOf]))
			pair[0], pair[1] = w0|w0<<16|w0<<32|w1<<48, w1|w1<<16
		}
	}
}

// sumRows computes a line. It may write rowBlock elements beyond len(dst), which must be allocated.
func sumRows(dst []int16, src []uint8, stride int, weight []int16) {
	whole := (len(dst) + rowBlock - 1) / rowBlock * rowBlock
	// the blocks would exceed the end of the image
	if !resampleAssembly || (len(weight)-1)*stride+whole > len(src) {
		sumRowsGo(dst, src, stride, weight)
		return
	}
	_ = dst[:whole]
	for from := 0; from < len(weight); from += rowTaps {
		sumRowsAsm(&dst[0], &src[from*stride], stride, whole, &weight[from], min(rowTaps, len(weight)-from), from)
	}
}

func sumColumns(dst []uint8, line []int16, a *axis, t *columnTable) {
	switch {
	case t.wide.groups > 0:
		t.wide.sum(dst, line)
		return
	case !resampleAssembly:
		sumColumnsGo(dst, line, a)
		return
	}
	_ = dst[3*groupSize*t.groups+3] // the last group writes up to four bytes beyond the row
	sumColumnsAsm(&dst[0], &line[0], &t.where[0], &t.weights[0], t.groups, t.pairs)
}
