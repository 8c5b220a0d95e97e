//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package images

// lanes is the number of samples in a vector. Shorter rows are converted in Go; the last vector of
// longer rows overlaps the one before.
const lanes = 16

// vectors reports whether there is assembly for rows of n samples.
func vectors(n int) bool { return hasAssembly && n >= lanes }

func fromYCbCr(dst, ys, cbs, crs []uint8) {
	n := len(ys)
	if !vectors(n) {
		fromYCbCrGo(dst, ys, cbs, crs)
		return
	}
	_, _, _ = dst[3*n-1], cbs[n-1], crs[n-1]
	fromYCbCrAsm(&dst[0], &ys[0], &cbs[0], &crs[0], n/lanes)
	if last := n - lanes; n%lanes > 0 {
		fromYCbCrAsm(&dst[3*last], &ys[last], &cbs[last], &crs[last], 1)
	}
}

func weighSum(dst []int16, near, far []uint8) {
	n := len(near)
	if !vectors(n) {
		weighSumGo(dst, near, far)
		return
	}
	_, _ = dst[n-1], far[n-1]
	weighSumAsm(&dst[0], &near[0], &far[0], n/lanes)
	if last := n - lanes; n%lanes > 0 {
		weighSumAsm(&dst[last], &near[last], &far[last], 1)
	}
}

func interpolate(dst []uint8, s []int16, left, right, shift int) {
	n := len(s) - 2
	if !vectors(n) {
		interpolateGo(dst, s, left, right, shift)
		return
	}
	_ = dst[2*n-1]
	interpolateAsm(&dst[0], &s[0], left, right, shift, n/lanes)
	if last := n - lanes; n%lanes > 0 {
		interpolateAsm(&dst[2*last], &s[last], left, right, shift, 1)
	}
}
