//go:build !noasm && !fspda_noasm

package data

import (
	"slices"

	"golang.org/x/sys/cpu"
)

// resampleAVX512 enables column sums in vectors of 32 elements. GODEBUG=cpu.avx512f=off disables
// it.
var resampleAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW

const (
	wideSize = 10 // output pixels per step: 30 of 32 values
	wideLane = 32 // numbers of a vector
	wideSpan = 21 // source pixels within one permutation of 64 values
)

// wideTable holds the weights of an axis for groups of ten output pixels whose source pixels lie
// within wideSpan, that is, for small scale factors. For each group, where is the byte offset of
// its first source pixel in the line, index the offset of the first tap of each output value, and
// weights the weight of each value, tap by tap.
type wideTable struct {
	where   []uint32
	index   []int16
	weights []int16
	groups  int // 0: this table does not apply
	taps    int
}

// set fills the table, or leaves it without groups if the axis does not fit.
func (t *wideTable) set(a *axis) {
	t.groups = 0
	if !resampleAVX512 {
		return
	}
	n := len(a.start)
	groups, taps := (n+wideSize-1)/wideSize, int(max(1, slices.Max(a.count)))
	t.where = grown(t.where, groups)
	t.index = grown(t.index, groups*wideLane)
	t.weights = grown(t.weights, groups*taps*wideLane)
	for g := range groups {
		first, last := g*wideSize, min((g+1)*wideSize, n)
		// starts are ascending, or descending if mirrored
		low, high := min(a.start[first], a.start[last-1]), int32(0)
		for i := first; i < last; i++ {
			high = max(high, a.start[i]+a.count[i])
		}
		if high-low > wideSpan {
			return
		}
		t.where[g] = uint32(6 * (low - a.low))
		index, weights := t.index[g*wideLane:][:wideLane], t.weights[g*taps*wideLane:][:taps*wideLane]
		for i := first; i < last; i++ {
			at, lane := int16(3*(a.start[i]-low)), 3*(i-first)
			index[lane], index[lane+1], index[lane+2] = at, at+1, at+2
			weight := a.weight[i*a.taps:][:a.taps]
			for k := range taps {
				w := weight[k]
				to := weights[k*wideLane+lane:][:3]
				to[0], to[1], to[2] = w, w, w
			}
		}
	}
	t.groups, t.taps = groups, taps
}

// sum computes an output row from a line. The last group writes up to pixelSlack bytes beyond the
// row.
func (t *wideTable) sum(dst []uint8, line []int16) {
	_ = dst[3*wideSize*t.groups+1]
	sumColumnsAVX512(&dst[0], &line[0], &t.where[0], &t.index[0], &t.weights[0], t.groups, t.taps)
}

// sumColumnsAVX512 writes 30 bytes a group, and 2 behind the last. It reads 64 numbers of the line
// from where each group begins.
//
//go:noescape
func sumColumnsAVX512(dst *uint8, line *int16, where *uint32, index, weights *int16, groups, taps int)
