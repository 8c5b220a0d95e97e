package cpu

// slide is a filter that slides over images: what the convolution does and, with its filter turned
// round, the data gradient. That of a convolution with stride t is t·t slides: the pixels whose
// coordinates leave the same remainders meet the same taps, one in t each way.
type slide struct {
	images           int
	rows, cols, deep int // of an image that is read: height, width and channels
	p, q, k          int // the pixels that are written, and their channels
	r, s             int // taps
	step             int // the distance of what two neighbours read
	top, left        int // where the first tap of the first pixel reads; outside of the image there are zeros
	// Pixel n,i,j is written at from + n·image + i·row + j·pixel.
	from, image, row, pixel int
	filter
}

// filter says which weight of a W[k·r·s·c] belongs to a tap of a slide.
type filter struct {
	turned            bool // the taps go backwards, and the outputs of W are the channels that are read
	wr, ws, wc        int  // rows and columns of W, and its channels
	rowTap, colTap, t int  // where turned: tap i,j is at row rowTap−i·t and column colTap−j·t of W
}

// forward is y = x ⋆ W.
func (v *convolution) forward() slide {
	return slide{
		images: v.n, rows: v.h, cols: v.w, deep: v.c,
		p: v.p, q: v.q, k: v.k, r: v.r, s: v.s,
		step: v.stride, top: -v.pad, left: -v.pad,
		image: v.p * v.q * v.k, row: v.q * v.k, pixel: v.k,
		filter: filter{wr: v.r, ws: v.s, wc: v.c},
	}
}

// backward is the part of dx of the rows i+pad ≡ a and the columns j+pad ≡ b, modulo the stride. It
// may have no pixels, or no taps.
func (v *convolution) backward(a, b int) slide {
	i, p, top, r := v.phase(a, v.h, v.r)
	j, q, left, s := v.phase(b, v.w, v.s)
	return slide{
		images: v.n, rows: v.p, cols: v.q, deep: v.k,
		p: p, q: q, k: v.c, r: r, s: s,
		step: 1, top: top, left: left,
		from: (i*v.w + j) * v.c, image: v.h * v.w * v.c, row: v.stride * v.w * v.c, pixel: v.stride * v.c,
		filter: filter{turned: true, wr: v.r, ws: v.s, wc: v.c, rowTap: a + (r-1)*v.stride, colTap: b + (s-1)*v.stride,
			t: v.stride},
	}
}

// phase looks along one axis of the input: of its size, which of the coordinates i+pad ≡ a modulo
// the stride is first and how many there are, what the first tap of the first one reads, and how
// many of the side's taps they meet.
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

// clear writes zeros.
func (l *slide) clear(out []float32) {
	for n := range l.images {
		for i := range l.p {
			for j := range l.q {
				clear(out[l.at(n, i, j):][:l.k])
			}
		}
	}
}

// at is where pixel n,i,j is written.
func (l *slide) at(n, i, j int) int { return l.from + n*l.image + i*l.row + j*l.pixel }

// products is how many products an element has.
func (l *slide) products() int { return l.r * l.s * l.deep }

// chunk is a part of the products of every element: so many runs, which begin at tap row, and of
// each the k products from skip on.
type chunk struct{ row, runs, skip, k int }

func (c chunk) depth() int { return c.runs * c.k }

// chunks is how many chunks there are.
func (l *slide) chunks() int {
	run := l.s * l.deep
	if pieces := gemmChunks(run); pieces > 1 {
		return l.r * pieces
	}
	per := gemmDepth / run
	return (l.r + per - 1) / per
}

// chunk returns chunk i, and the number of products before it.
func (l *slide) chunk(i int) (c chunk, before int) {
	run := l.s * l.deep
	if pieces := gemmChunks(run); pieces > 1 {
		row := i / pieces
		skip, k := share(i%pieces, pieces, run)
		return chunk{row, 1, skip, k}, row*run + skip
	}
	per := gemmDepth / run
	row := i * per
	return chunk{row, min(per, l.r-row), 0, run}, row * run
}

// copyLine writes what the taps of one row read for the pixels j to j+n, or for pixels of column
// distance 1 everything between: it is part of row i of the image n of src, from column j on, n
// pixels each deep numbers, pitch apart, every step-th one. Outside are zeros.
func (l *slide) copyLine(dst, src []float32, n, i, j, pixels, step, pitch int) {
	deep := l.deep
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
