package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// The parts of a correlation that are held in the second-level cache, in numbers.
const (
	maxWholeWeights = 160 << 10 // most packed weights that are packed at once, and then
	wholeBlock      = 64 << 10  // the size of a block of images; more weights are packed piece by piece,
	weightCols      = 256       // columns of a piece, for
	maxBlock        = 1 << 20   // a block of this size: networks have many weights where images are small
)

// layout says how the input of a correlation is copied to a block: with its padding, row after row.
// A row of the filter covers one run of a row of the block.
type layout struct {
	packsAllWeights  bool // all weights are packed once
	inPlace          bool // the input is read where it is
	images, rows     int  // images and rows of the output in the largest block
	copyStride       int  // distance of the columns that are copied
	colSize, rowSize int  // distance of columns and of rows in the block
	colStep, rowStep int  // columns and rows from a pixel to the next
}

func (l *correlation) layout() layout {
	b := layout{packsAllWeights: l.products()*roundUp(l.k, maxPanel) <= maxWholeWeights,
		copyStride: 1, colSize: l.channels, colStep: l.stride, rowStep: l.stride}
	cols := (l.q-1)*l.stride + l.s
	b.inPlace = l.isProduct()
	if l.s == 1 { // the pixels between are not read
		cols, b.copyStride, b.colStep = l.q, l.stride, 1
		if l.channels%512 == 0 && !b.inPlace { // or the columns would compete for the same cache sets
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

// isProduct reports whether every pixel reads only the pixel in its own position.
func (l *correlation) isProduct() bool {
	return l.r == 1 && l.s == 1 && l.stride == 1 && l.firstRow == 0 && l.firstCol == 0 && l.p == l.rows && l.q == l.cols
}

// height returns how many rows of a block the given number of rows of the output read.
func (b *layout) height(l *correlation, rows int) int { return (rows-1)*b.rowStep + l.r }

// blockSize returns the numbers of the largest block, in whole cache lines.
func (b *layout) blockSize(l *correlation) int {
	return roundUp(b.images*b.height(l, b.rows)*b.rowSize, 16)
}

func packedScratch(l *correlation) int {
	b := l.layout()
	if b.inPlace {
		return b.outputSize(l) + b.weightSize(l)
	}
	return b.outputSize(l) + b.blockSize(l) + b.weightSize(l)
}

// outputSize returns the numbers of the output that reads a block, before they become numbers of 16
// bits.
func (b *layout) outputSize(l *correlation) int {
	if !l.half {
		return 0
	}
	return roundUp(b.images*b.rows*l.q*l.k, 16)
}

// weightSize returns the numbers of the packed weights.
func (b *layout) weightSize(l *correlation) int {
	if b.packsAllWeights {
		return l.products() * roundUp(l.k, maxPanel)
	}
	return min(tile.Depth, l.products()) * min(weightCols, roundUp(l.k, maxPanel))
}

// correlator is a correlation in progress.
type correlator struct {
	correlation
	*tile.Set
	layout
	tile                    *tile.Args
	src, w, out             []float32
	blockBuf, packedWeights []float32 // input and weights
	block                   []float32 // where the input is read
	n, images, i, rows      int       // the part of the output that reads the block
}

// packedCorrelation is plainCorrelation with the micro-kernels.
func packedCorrelation(s *tile.Set, l *correlation, src, w, out, scratch []float32) {
	d := correlator{correlation: *l, Set: s, layout: l.layout(), tile: tileArgsPool.Get().(*tile.Args), src: src, w: w,
		out: out}
	size := d.outputSize(l)
	output, scratch := scratch[:size], scratch[size:]
	if d.packedWeights = scratch; !d.inPlace {
		size := d.layout.blockSize(l)
		d.blockBuf, d.packedWeights = scratch[:size], scratch[size:]
	}
	if d.half {
		d.out, d.pixelStride, d.rowStride, d.imageStride = output, l.k, l.q*l.k, d.layout.rows*l.q*l.k
	}
	*d.tile = tile.Args{ARow: 4 * d.colStep * d.colSize, ACol: 4, BRow: 4 * 2 * s.Lanes, Groups: 1,
		CRow: 4 * d.pixelStride, Alpha: 1}
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
			if d.half {
				d.offset = -n*d.imageStride - i*d.rowStride
			}
			d.compute()
			if d.half {
				d.narrow(l, out)
			}
		}
	}
	*d.tile = tile.Args{} // so that the pool keeps no operand alive
	tileArgsPool.Put(d.tile)
}

// fill sets the block to the input of the output's rows: a copy with padding, or the input itself.
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

// narrow writes the pixels that were computed to the output, whose numbers have 16 bits.
func (d *correlator) narrow(l *correlation, out []float32) {
	for n := range d.images {
		for i := range d.rows {
			row, to := d.out[n*d.imageStride+i*d.rowStride:][:d.rowStride], l.outputAt(d.n+n, d.i+i, 0)
			if l.pixelStride == l.k {
				tile.Narrow(out[to/2:], row)
				continue
			}
			for j := range l.q {
				tile.Narrow(out[(to+j*l.pixelStride)/2:], row[j*l.k:][:l.k])
			}
		}
	}
}

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

// pairs computes short rows in pairs, one in each half of a tile.
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

// rowAt returns where a row of the current part of the output begins, in the block and in the
// output.
func (d *correlator) rowAt(row int) (block, out int) {
	n, i := row/d.rows, row%d.rows
	return (n*d.height(&d.correlation, d.rows) + i*d.rowStep) * d.rowSize, d.outputAt(d.n+n, d.i+i, 0)
}

// strip computes some pixels, panel by panel.
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

// pack writes the weights of depth products of the columns from k on. The panel that begins at
// column c is at c·depth.
func (d *correlator) pack(dst []float32, depth, before, k, cols int) {
	wide := 2 * d.Lanes
	if !d.flipped {
		all := d.products()
		for at := 0; at < cols; at += wide {
			tile.PackTransposed(dst[at*depth:], wide, tile.RowMajor(d.w[(k+at)*all+before:], all), min(wide, cols-at),
				depth)
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
			tile.PackCopy(dst[full*wide*depth+p*wide:], wide*depth, wide, tile.ColMajor(d.w[from+full*wide:], apart),
				rest, 1, n)
		}
		p += n
	}
}
