package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

func (v *convolution) parallelParts(threads int) int {
	work := float64(v.n*v.p*v.q) * float64(v.k) * float64(v.r*v.s*v.c)
	return max(1, min(threads, int(work/tile.MinParallelWork)))
}

// part returns a part of the output: some of the images, or, if there are too few, some rows of
// each. It reads from the returned offset on. It may have no rows. Elements do not depend on the
// division.
func (l correlation) part(part, of int) (correlation, int) {
	if l.images >= of {
		var first int
		first, l.images = kernel.Split(part, of, l.images)
		l.offset += first * l.imageStride
		return l, first * l.rows * l.cols * l.channels
	}
	var first int
	first, l.p = kernel.Split(part, of, max(0, l.p))
	l.offset += first * l.rowStride
	l.firstRow += first * l.stride
	return l, 0
}

// maxPartScratch returns the scratch memory of all parts, each of the size of the largest.
func maxPartScratch(slides []correlation, of int) int {
	most := 0
	for _, whole := range slides {
		for part := range of {
			if l, _ := whole.part(part, of); l.p > 0 && l.q > 0 && l.r > 0 && l.s > 0 {
				most = max(most, correlationScratch(&l))
			}
		}
	}
	return kernel.Padded(most) * of
}

func convScratch(dims []int, threads int) int {
	return forwardScratch(convolutionOf(dims), threads)
}

func forwardScratch(v convolution, threads int) int {
	return maxPartScratch([]correlation{v.forward()}, v.parallelParts(threads))
}

// convGradXScratch returns the numbers of scratch memory of convGradX.
func convGradXScratch(dims []int, threads int) int {
	return backwardScratch(convolutionOf(dims), threads)
}

func backwardScratch(v convolution, threads int) int {
	var slides []correlation
	for i := range v.stride {
		for j := range v.stride {
			slides = append(slides, v.backward(i, j))
		}
	}
	return maxPartScratch(slides, v.parallelParts(threads))
}

// convGradWScratch returns the numbers of scratch memory of convGradW.
func convGradWScratch(dims []int, threads int) int {
	return gradientScratch(convolutionOf(dims), threads)
}

func gradientScratch(v convolution, threads int) int {
	return kernel.Padded(weightGradScratch(&v)) * v.parallelParts(threads)
}
