package data

import (
	"image"
	"math"
)

// The resampler scales a box of an image by the antialiased triangle filter, like Pillow's resize
// with BILINEAR, which torchvision uses: a pixel is the mean of the source pixels within max(scale,
// 1) of its centre, weighted by proximity. It is separable and works row by row: the source rows
// under an output row are summed to one line, from which the output row is computed, so that all
// data but the source stay in the L1 cache. Numbers are 16-bit fixed point; products are rounded,
// sums saturate.

const (
	weightOne = 1 << 15 // the sum of the weights of a pixel
	lineOne   = 128     // value of one source level in the line
	// elements after a line and the taps of a pixel that vector code may access without effect
	lineSlack  = 64
	pixelSlack = 32 // bytes after a row that it may write
)

// window is the used part of an axis: the source pixels from to from+size-1 are scaled to out
// pixels, of which those from first on are taken.
type window struct {
	from, size int
	out        int
	first      int
	mirror     bool // pixels are written in reverse order
}

// axis holds the weights of n output pixels: pixel i is the sum of weight[i*taps+k] times source
// start[i]+k, over k < count[i].
type axis struct {
	start, count []int32
	weight       []int16
	taps         int
	low, high    int32 // the required source pixels: low to high-1

	share []float64
}

// set computes the weights of n output pixels.
func (a *axis) set(n int, w window) {
	scale := float64(w.size) / float64(w.out)
	reach := max(scale, 1)
	a.taps = int(2*reach) + 1
	a.start, a.count = grown(a.start, n), grown(a.count, n)
	a.weight = grown(a.weight, n*a.taps)
	a.share = grown(a.share, a.taps)
	a.low, a.high = int32(w.from+w.size), 0
	for i := range n {
		at := i
		if w.mirror {
			at = n - 1 - i
		}
		centre := float64((float64(w.first+i) + 0.5) * scale)
		low, high := max(0, int(centre-reach+0.5)), min(w.size, int(centre+reach+0.5))
		a.quantise(a.weight[at*a.taps:][:a.taps], low, high, centre-0.5, 1/reach)
		a.start[at], a.count[at] = int32(w.from+low), int32(high-low)
		a.low, a.high = min(a.low, a.start[at]), max(a.high, a.start[at]+a.count[at])
	}
}

// quantise computes the weights of the source pixels low to high-1 for a pixel at centre: integers
// with the sum weightOne, or one less if a single pixel has all the weight.
func (a *axis) quantise(dst []int16, low, high int, centre, slope float64) {
	share, sum := a.share[:high-low], 0.0
	distance := float64(low) - centre
	for k := range share {
		v := 1 - float64(math.Abs(distance)*slope)
		if v < 0 {
			v = 0
		}
		share[k] = v
		sum += v
		distance++
	}
	left, largest, most := int32(weightOne), 0, 0.0
	factor := weightOne / sum
	for k, v := range share {
		w := int32(float64(v*factor) + 0.5)
		left -= w
		if v > most {
			largest, most = k, v
		}
		dst[k] = int16(min(w, weightOne-1))
	}
	for k := len(share); k < len(dst); k++ {
		dst[k] = 0
	}
	dst[largest] = int16(min(int32(dst[largest])+left, weightOne-1))
}

// grown returns a slice of n elements in the memory of s if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// resampler is the scratch memory of one goroutine.
type resampler struct {
	columns, rows axis
	table         columnTable
	line          []int16
	row           []uint8

	// If norm is not nil, the values of each row are written to numbers as soon as its pixels are
	// computed and still cached.
	norm    *normalizer
	numbers []float32
}

// set prepares rows of w pixels and h of them, and returns the box of source pixels that they need.
func (r *resampler) set(w, h int, across, down window) image.Rectangle {
	r.columns.set(w, across)
	r.rows.set(h, down)
	r.table.set(&r.columns)
	return image.Rect(int(r.columns.low), int(r.rows.low), int(r.columns.high), int(r.rows.high))
}

// run writes the rows to dst. The source is rows of stride bytes, three for a pixel, the
// first of them a corner's.
func (r *resampler) run(dst, src []uint8, stride int, corner image.Point) {
	w := len(r.columns.start)
	from, n := 3*(int(r.columns.low)-corner.X), 3*int(r.columns.high-r.columns.low)
	r.line = grown(r.line, n+3*r.columns.taps+lineSlack)
	for y, start := range r.rows.start {
		weight := r.rows.weight[y*r.rows.taps:][:r.rows.count[y]]
		sumRows(r.line[:n], src[(int(start)-corner.Y)*stride+from:], stride, weight)
		if 3*w*(y+1)+pixelSlack <= len(dst) {
			// bytes written beyond the row are overwritten by the next row
			sumColumns(dst[3*w*y:], r.line, &r.columns, &r.table)
		} else {
			r.row = grown(r.row, 3*w+pixelSlack)
			sumColumns(r.row, r.line, &r.columns, &r.table)
			copy(dst[3*w*y:], r.row[:3*w])
		}
		if r.norm != nil {
			r.norm.apply(r.numbers[3*w*y:3*w*(y+1)], dst[3*w*y:3*w*(y+1)], nil)
		}
	}
}

// rounded is a·b/2^15, rounded; both are at least 0.
func rounded(a int32, b int16) int32 { return (a*int32(b) + 1<<14) >> 15 }

// sumRowsGo computes a line: dst[i] = Σ weight[k]·src[k·stride+i], in units of lineOne.
func sumRowsGo(dst []int16, src []uint8, stride int, weight []int16) {
	for i := range dst {
		sum := int32(0)
		for k, w := range weight {
			sum += rounded(lineOne*int32(src[k*stride+i]), w)
		}
		dst[i] = int16(min(sum, 1<<15-1))
	}
}

// sumColumnsGo computes an output row from a line that begins at source pixel a.low.
func sumColumnsGo(dst []uint8, line []int16, a *axis) {
	for i, start := range a.start {
		weight := a.weight[i*a.taps:][:a.count[i]]
		from := line[3*(start-a.low):]
		for c := range 3 {
			sum := int32(lineOne / 2)
			for k, w := range weight {
				sum += rounded(int32(from[3*k+c]), w)
			}
			dst[3*i+c] = uint8(min(sum, 1<<15-1) / lineOne)
		}
	}
}
