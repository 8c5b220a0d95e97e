//go:build (!amd64 && !arm64) || noasm || fspda_noasm

package images

func fromYCbCr(dst, ys, cbs, crs []uint8) { fromYCbCrGo(dst, ys, cbs, crs) }

func weighSum(dst []int16, near, far []uint8) { weighSumGo(dst, near, far) }

func interpolate(dst []uint8, s []int16, left, right, shift int) {
	interpolateGo(dst, s, left, right, shift)
}
