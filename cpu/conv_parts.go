package cpu

// parallelism is how many parts to compute side by side, given so many goroutines.
func (v *convolution) parallelism(threads int) int {
	work := float64(v.n*v.p*v.q) * float64(v.k) * float64(v.r*v.s*v.c)
	return max(1, min(threads, int(work/leastProducts)))
}

// part is what part of all writes: some of the images, or where these are too few some rows of
// each. It reads from the number on that is returned. It may have no rows. Each element is what it
// is in the whole.
func (l slide) part(part, of int) (slide, int) {
	if l.images >= of {
		var first int
		first, l.images = share(part, of, l.images)
		l.from += first * l.image
		return l, first * l.rows * l.cols * l.deep
	}
	var first int
	first, l.p = share(part, of, max(0, l.p))
	l.from += first * l.row
	l.top += first * l.step
	return l, 0
}

// partsScratch is the room of all parts of slides, each the same.
func partsScratch(slides []slide, of int) int {
	most := 0
	for _, whole := range slides {
		for part := range of {
			if l, _ := whole.part(part, of); l.p > 0 && l.q > 0 && l.r > 0 && l.s > 0 {
				most = max(most, slideScratch(&l))
			}
		}
	}
	return padded(most) * of
}

// convScratch is how many numbers conv needs to work in on so many threads.
func convScratch(dims []int, threads int) int {
	v := convolutionOf(dims)
	return partsScratch([]slide{v.forward()}, v.parallelism(threads))
}

// convGradXScratch is how many numbers convGradX needs to work in.
func convGradXScratch(dims []int, threads int) int {
	v := convolutionOf(dims)
	var slides []slide
	for i := range v.stride {
		for j := range v.stride {
			slides = append(slides, v.backward(i, j))
		}
	}
	return partsScratch(slides, v.parallelism(threads))
}

// convGradWScratch is how many numbers convGradW needs to work in.
func convGradWScratch(dims []int, threads int) int {
	v := convolutionOf(dims)
	return padded(sumScratch(&v)) * v.parallelism(threads)
}
