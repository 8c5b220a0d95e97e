//go:build !noasm && !fspda_noasm

package images

import "golang.org/x/sys/cpu"

// lanes is the number of samples in a vector. Shorter rows are converted in Go; the last vector of
// longer rows overlaps the one before.
const lanes = 16

// vectors reports whether there is assembly for rows of n samples. GODEBUG=cpu.avx2=off disables it.
func vectors(n int) bool { return cpu.X86.HasAVX2 && n >= lanes }

func fromYCbCr(dst, ys, cbs, crs []uint8) {
	n := len(ys)
	if !vectors(n) {
		fromYCbCrGo(dst, ys, cbs, crs)
		return
	}
	_, _, _ = dst[3*n-1], cbs[n-1], crs[n-1]
	fromYCbCrAVX2(&dst[0], &ys[0], &cbs[0], &crs[0], n/lanes)
	if last := n - lanes; n%lanes > 0 {
		fromYCbCrAVX2(&dst[3*last], &ys[last], &cbs[last], &crs[last], 1)
	}
}

func weighSum(dst []int16, near, far []uint8) {
	n := len(near)
	if !vectors(n) {
		weighSumGo(dst, near, far)
		return
	}
	_, _ = dst[n-1], far[n-1]
	weighSumAVX2(&dst[0], &near[0], &far[0], n/lanes)
	if last := n - lanes; n%lanes > 0 {
		weighSumAVX2(&dst[last], &near[last], &far[last], 1)
	}
}

func interpolate(dst []uint8, s []int16, left, right, shift int) {
	n := len(s) - 2
	if !vectors(n) {
		interpolateGo(dst, s, left, right, shift)
		return
	}
	_ = dst[2*n-1]
	interpolateAVX2(&dst[0], &s[0], left, right, shift, n/lanes)
	if last := n - lanes; n%lanes > 0 {
		interpolateAVX2(&dst[2*last], &s[last], left, right, shift, 1)
	}
}

// fromYCbCrAVX2 is fromYCbCrGo for groups of 16 pixels.
//
//go:noescape
func fromYCbCrAVX2(dst, ys, cbs, crs *uint8, groups int)

// weighSumAVX2 is weighSumGo for groups of 16 samples.
//
//go:noescape
func weighSumAVX2(dst *int16, near, far *uint8, groups int)

// interpolateAVX2 is interpolateGo for groups of 16 sums, from s[1] on.
//
//go:noescape
func interpolateAVX2(dst *uint8, s *int16, left, right, shift, groups int)
