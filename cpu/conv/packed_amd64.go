//go:build !noasm

package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// What of a slide is held in the second cache, in numbers.
const (
	maxWholeWeights = 160 << 10 // packed weights up to so many are packed once, and then a block of the images is
	wholeBlock      = 64 << 10  // as large as this. Where there are more of them, they are packed piece by piece
	weightCols      = 256       // as wide as this, for a block
	maxBlock        = 1 << 20   // as large as this: weights that are many come with images that are small.
)

// blocks says how the input of a slide is copied to a block of the workspace: with its padding, and
// as lines one after the other. What a row of the filter sees is one run of a line.
type layout struct {
	packsAllWeights  bool // all weights are packed once
	inPlace          bool // there is nothing to copy
	images, rows     int  // of the output, of the largest block
	copyStride       int  // distance of the columns that are copied
	colSize, rowSize int  // distance of columns and of rows in the block
	colStep, rowStep int  // columns and rows from a pixel to the next
}

// blocks chooses them.
func (l *correlation) layout() layout {
	b := layout{packsAllWeights: l.products()*roundUp(l.k, maxPanel) <= maxWholeWeights, copyStride: 1, colSize: l.channels, colStep: l.stride,
		rowStep: l.stride}
	cols := (l.q-1)*l.stride + l.s
	b.inPlace = l.isProduct()
	if l.s == 1 { // what lies between is not read
		cols, b.copyStride, b.colStep = l.q, l.stride, 1
		if l.channels%512 == 0 && !b.inPlace { // or the columns would meet in the cache
			b.colSize += 16
		}
	}
	if l.r == 1 {
		b.rowStep = 1
	}
	b.rowSize = cols * b.colSize
	limit := maxBlock
	if b.packsAllWeights {
		limit = wholeBlock
	}
	if image := b.height(l, l.p) * b.rowSize; image <= limit {
		b.images, b.rows = min(l.images, limit/image), l.p
		return b
	}
	rows := max(1, (limit/b.rowSize-l.r)/b.rowStep+1)
	parts := (l.p + rows - 1) / rows
	b.images, b.rows = 1, (l.p+parts-1)/parts
	return b
}

// isProduct says whether every pixel reads just the one in its place.
func (l *correlation) isProduct() bool {
	return l.r == 1 && l.s == 1 && l.stride == 1 && l.firstRow == 0 && l.firstCol == 0 && l.p == l.rows && l.q == l.cols
}

// height is how many lines the given number of rows of the output read.
func (b *layout) height(l *correlation, rows int) int { return (rows-1)*b.rowStep + l.r }

// room is how many numbers the largest block takes, up to where a cache line ends.
func (b *layout) blockSize(l *correlation) int {
	return roundUp(b.images*b.height(l, b.rows)*b.rowSize, 16)
}

func packedScratch(l *correlation) int {
	b := l.layout()
	if b.inPlace {
		return b.weightSize(l)
	}
	return b.blockSize(l) + b.weightSize(l)
}

// weights is the room for packed weights.
func (b *layout) weightSize(l *correlation) int {
	if b.packsAllWeights {
		return l.products() * roundUp(l.k, maxPanel)
	}
	return min(tile.Depth, l.products()) * min(weightCols, roundUp(l.k, maxPanel))
}

// slider is a slide at work.
type correlator struct {
	correlation
	*tile.Set
	layout
	tile                    *tile.Args
	src, w, out             []float32
	blockBuf, packedWeights []float32 // input and weights
	block                   []float32 // what the input is read from
	n, images, i, rows      int       // what of the output is read from the block
}

// slide is slidePlain with the micro-kernels.
func packedCorrelation(s *tile.Set, l *correlation, src, w, out, scratch []float32) {
	d := correlator{correlation: *l, Set: s, layout: l.layout(), tile: tileArgsPool.Get().(*tile.Args), src: src, w: w,
		out: out}
	if d.packedWeights = scratch; !d.inPlace {
		size := d.layout.blockSize(l)
		d.blockBuf, d.packedWeights = scratch[:size], scratch[size:]
	}
	*d.tile = tile.Args{ARow: 4 * d.colStep * d.colSize, ACol: 4, BRow: 4 * 2 * s.Lanes, Groups: 1, CRow: 4 * l.pixelStride, Alpha: 1}
	if d.packsAllWeights {
		for m := range l.chunks() {
			part, before := l.chunk(m)
			d.pack(d.packedWeights[before*roundUp(l.k, maxPanel):], part.depth(), before, 0, l.k)
		}
	}
	for n := 0; n < l.images; n += d.layout.images {
		d.n, d.images = n, min(d.layout.images, l.images-n)
		for i := 0; i < l.p; i += d.layout.rows {
			d.i, d.rows = i, min(d.layout.rows, l.p-i)
			d.fill()
			d.compute()
		}
	}
	*d.tile = tile.Args{} // so that the pool keeps no operand alive
	tileArgsPool.Put(d.tile)
}

// fill makes the block what the output's rows read: a copy of it with its padding, or the input
// itself.
func (d *correlator) fill() {
	if d.inPlace {
		d.block = d.src[(d.n*d.correlation.rows+d.i)*d.cols*d.channels:]
		return
	}
	d.block = d.blockBuf
	cols := d.rowSize / d.colSize
	to := d.block
	for n := range d.images {
		for m := range d.height(&d.correlation, d.rows) {
			i := d.i*d.stride + m
			if d.r == 1 {
				i = (d.i + m) * d.stride
			}
			d.copyRow(to, d.src, d.n+n, d.firstRow+i, d.firstCol, cols, d.copyStride, d.colSize)
			to = to[d.rowSize:]
		}
	}
}

// compute writes the pixels that the block is for.
func (d *correlator) compute() {
	if d.packsAllWeights {
		for m := range d.chunks() {
			_, before := d.correlation.chunk(m)
			d.chunk(m, d.packedWeights[before*roundUp(d.k, maxPanel):], 0, d.k)
		}
		return
	}
	for k := 0; k < d.k; k += weightCols {
		cols := min(weightCols, d.k-k)
		for m := range d.chunks() {
			part, before := d.correlation.chunk(m)
			d.pack(d.packedWeights, part.depth(), before, k, cols)
			d.chunk(m, d.packedWeights, k, cols)
		}
	}
}

// chunk adds chunk m to the columns from k on.
func (d *correlator) chunk(m int, packed []float32, k, cols int) {
	part, _ := d.correlation.chunk(m)
	t := d.tile
	t.K, t.Runs, t.AJump, t.Beta = part.k, part.runs, 4*(d.rowSize-part.k), betaOf(m)
	origin := part.row*d.rowSize + part.skip
	if high := len(d.Tiles); 2*d.q <= high {
		d.pairs(origin, part.depth(), packed, k, cols)
	} else {
		parts := (d.q + high - 1) / high
		for row := range d.images * d.rows {
			a, c := d.rowAt(row)
			for s := range parts {
				j, height := kernel.Split(s, parts, d.q)
				t.Ahead, t.Step = height*t.ARow, height*t.ARow/part.depth() // the next strip
				d.segment(j, height, part.depth(), a+origin, packed, c+k, cols)
			}
		}
	}
}

// segment computes the pixels from column j on of the row that begins at a in the block and at c in
// the output.
func (d *correlator) segment(j, height, depth, a int, packed []float32, c, cols int) {
	t, half, next := d.tile, (height+1)/2, d.colStep*d.colSize
	a, c = a+j*next, c+j*d.pixelStride
	t.A = &d.block[a]
	if height == 1 {
		d.strip(1, depth, packed, c, c, cols)
		return
	}
	t.A2 = &d.block[a+half*next]
	d.strip(height, depth, packed, c, c+half*d.pixelStride, cols)
}

// pairs computes rows that are short two by two, one in each half of a tile.
func (d *correlator) pairs(origin, depth int, packed []float32, k, cols int) {
	t, rows := d.tile, d.images*d.rows
	t.Ahead, t.Step = 8*d.rowStep*d.rowSize, 2*d.q*t.ARow/depth
	for row := 0; row < rows; row += 2 {
		a, c := d.rowAt(row)
		if row+1 == rows {
			d.segment(0, d.q, depth, a+origin, packed, c+k, cols)
			return
		}
		a2, c2 := d.rowAt(row + 1)
		t.A, t.A2 = &d.block[a+origin], &d.block[a2+origin]
		d.strip(2*d.q, depth, packed, c+k, c2+k, cols)
	}
}

// rowAt is where a row of the block's part of the output begins, in the block and in the output.
func (d *correlator) rowAt(row int) (block, out int) {
	n, i := row/d.rows, row%d.rows
	return (n*d.height(&d.correlation, d.rows) + i*d.rowStep) * d.rowSize, d.outputAt(d.n+n, d.i+i, 0)
}

// strip computes some pixels, panel after panel.
func (d *correlator) strip(height, depth int, packed []float32, c, c2, cols int) {
	wide, t := 2*d.Lanes, d.tile
	tiles := &d.Tiles[height-1]
	for at := 0; at < cols; at += wide {
		t.B, t.C, t.C2 = &packed[at*depth], &d.out[c+at], &d.out[c2+at]
		vectors := 1
		if t.Last = min(wide, cols-at); t.Last > d.Lanes {
			vectors, t.Last = 2, t.Last-d.Lanes
		}
		tiles[vectors-1](t)
	}
}

// pack writes the weights of so many products of the columns from k on: the panel that begins at
// column c is at c·depth.
func (d *correlator) pack(dst []float32, depth, before, k, cols int) {
	wide := 2 * d.Lanes
	if !d.flipped {
		all := d.products()
		for at := 0; at < cols; at += wide {
			tile.PackTransposed(dst[at*depth:], wide, tile.RowMajor(d.w[(k+at)*all+before:], all), min(wide, cols-at), depth)
		}
		return
	}
	apart := d.wRows * d.wCols * d.wChannels
	for p := 0; p < depth; {
		tap, channel := (before+p)/d.channels, (before+p)%d.channels
		n := min(depth-p, d.channels-channel)
		from := d.weight(tap/d.s, tap%d.s, channel) + k
		full := cols / wide
		tile.PackCopy(dst[p*wide:], wide*depth, wide, tile.ColMajor(d.w[from:], apart), wide, full, n)
		if rest := cols - full*wide; rest > 0 {
			tile.PackCopy(dst[full*wide*depth+p*wide:], wide*depth, wide, tile.ColMajor(d.w[from+full*wide:], apart), rest, 1, n)
		}
		p += n
	}
}
