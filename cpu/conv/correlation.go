package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// correlation is a filter that slides over images: the forward convolution and, with the filter
// flipped, the data gradient. The data gradient of a convolution with stride t consists of t·t
// correlations: pixels whose coordinates are equal modulo t meet the same taps, one in t each way.
type correlation struct {
	images               int
	rows, cols, channels int // height, width and channels of the image that is read
	p, q, k              int // the pixels that are written, and their channels
	r, s                 int // taps
	stride               int // the distance of the pixels that two neighbours read
	firstRow, firstCol   int // where the first tap of the first pixel reads; outside of the image there are zeros
	// Pixel n,i,j is written at offset + n·imageStride + i·rowStride + j·pixelStride.
	offset, imageStride, rowStride, pixelStride int
	kind                                        tile.Kind
	half                                        bool // the pixels that are written have numbers of 16 bits
	filter
}

// filter maps the taps of a correlation to the weights W[k·r·s·c].
type filter struct {
	flipped                 bool // the taps go backwards, and the outputs of W are the channels that are read
	wRows, wCols, wChannels int  // rows and columns of W, and its channels
	// if flipped: tap i,j is at row tapRow−i·tapStride and column tapCol−j·tapStride of W
	tapRow, tapCol, tapStride int
}

// forward returns y = x ⋆ W.
func (v *convolution) forward() correlation {
	return correlation{
		images: v.n, rows: v.h, cols: v.w, channels: v.c,
		p: v.p, q: v.q, k: v.k, r: v.r, s: v.s,
		stride: v.stride, firstRow: -v.pad, firstCol: -v.pad,
		imageStride: v.p * v.q * v.k, rowStride: v.q * v.k, pixelStride: v.k, kind: v.kind, half: v.half.Output(0),
		filter: filter{wRows: v.r, wCols: v.s, wChannels: v.c},
	}
}

// backward returns the part of dx of the rows i+pad ≡ a and the columns j+pad ≡ b, modulo the
// stride. It may have no pixels, or no taps.
func (v *convolution) backward(a, b int) correlation {
	i, p, top, r := v.phase(a, v.h, v.r)
	j, q, left, s := v.phase(b, v.w, v.s)
	return correlation{
		images: v.n, rows: v.p, cols: v.q, channels: v.k,
		p: p, q: q, k: v.c, r: r, s: s,
		stride: 1, firstRow: top, firstCol: left,
		offset: (i*v.w + j) * v.c, imageStride: v.h * v.w * v.c,
		rowStride: v.stride * v.w * v.c, pixelStride: v.stride * v.c, kind: v.kind, half: v.half.Output(0),
		filter: filter{flipped: true, wRows: v.r,
			wCols: v.s, wChannels: v.c, tapRow: a + (r-1)*v.stride, tapCol: b + (s-1)*v.stride, tapStride: v.stride},
	}
}

// phase looks at the coordinates i+pad ≡ a, modulo the stride, along one axis of the input: the
// first of them and their number, the position that the first tap of the first one reads, and the
// number of the filter's taps that they meet.
func (v *convolution) phase(a, size, side int) (first, count, reads, taps int) {
	u := (v.pad - a + v.stride - 1) / v.stride // the first with u·stride + a ≥ pad
	if a >= v.pad {
		u = 0
	}
	first = u*v.stride + a - v.pad
	count = (size - first + v.stride - 1) / v.stride
	taps = (side - a + v.stride - 1) / v.stride
	return first, max(0, count), u - (taps - 1), max(0, taps)
}

func (l *correlation) clear(out []float32) {
	for n := range l.images {
		for i := range l.p {
			for j := range l.q {
				at, end := l.outputAt(n, i, j), l.outputAt(n, i, j)+l.k
				if l.half {
					at, end = at/2, end/2
				}
				clear(out[at:end])
			}
		}
	}
}

func (l *correlation) outputAt(n, i, j int) int {
	return l.offset + n*l.imageStride + i*l.rowStride + j*l.pixelStride
}

func (l *correlation) products() int { return l.r * l.s * l.channels }

// chunk is a part of the products of every element: some runs, which begin at tap row `row`, and k
// products of each run from skip on.
type chunk struct{ row, runs, skip, k int }

func (c chunk) depth() int { return c.runs * c.k }

func (l *correlation) chunks() int {
	run := l.s * l.channels
	if pieces := tile.Chunks(run); pieces > 1 {
		return l.r * pieces
	}
	per := tile.Depth / run
	return (l.r + per - 1) / per
}

func (l *correlation) chunk(i int) (c chunk, before int) {
	run := l.s * l.channels
	if pieces := tile.Chunks(run); pieces > 1 {
		row := i / pieces
		skip, k := kernel.Split(i%pieces, pieces, run)
		return chunk{row, 1, skip, k}, row*run + skip
	}
	per := tile.Depth / run
	row := i * per
	return chunk{row, min(per, l.r-row), 0, run}, row * run
}

// copyRow writes the pixels that the taps of one row read: n pixels of row i of image n of src,
// from column j on, every step-th one, to places pitch apart. Outside of the image are zeros.
func (l *correlation) copyRow(dst, src []float32, n, i, j, pixels, step, pitch int) {
	deep := l.channels
	if i < 0 || i >= l.rows {
		clear(dst[:(pixels-1)*pitch+deep])
		return
	}
	row := src[(n*l.rows+i)*l.cols*deep:][:l.cols*deep]
	if step == 1 && pitch == deep {
		before := min(pixels, max(0, -j))
		inside := max(0, min(pixels-before, l.cols-j-before))
		clear(dst[:before*deep])
		if inside > 0 {
			copy(dst[before*deep:], row[(j+before)*deep:][:inside*deep])
		}
		clear(dst[(before+inside)*deep : pixels*deep])
		return
	}
	for m := range pixels {
		to := dst[m*pitch:][:deep]
		if at := j + m*step; at < 0 || at >= l.cols {
			clear(to)
		} else {
			copy(to, row[at*deep:])
		}
	}
}
