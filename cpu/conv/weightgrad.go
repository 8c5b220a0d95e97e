package conv

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// gradRows is how many rows of dW are computed at a time: their part of dy stays in the
// second-level cache.
const gradRows = 266

// weightGrad is a weight gradient in progress. For one row of the filter, dW is a matrix product:
// the outputs by the s·c numbers that a row of the filter covers, which are contiguous in the
// padded input, with the pixels of the output as the inner dimension.
type weightGrad struct {
	*tile.Set
	v               convolution
	corr            correlation // the forward convolution
	layout          layout
	part            pixels
	tile            *tile.Args
	x, dy, dw       []float32
	block, blockBuf []float32 // where x is read, and where it is copied to
	packed          []float32 // dy, if dW is computed transposed, or pairs of dy
	pairsApart      int       // distance of the rows of dyᵀ in packed, if the micro-kernels read rows; 0: it is dy
	row             []float32 // a row of numbers that become pairs
	strips, panel   []float32 // rows of dy and columns of the block that are packed for the micro-kernels
	prefetch        prefetcher
	transposed      []float32 // dW transposed, if that fills vectors better
	from, to        int       // the outputs to compute, or for the transpose the strips of all rows of the filter
}

// gradLayout returns how x is copied, and the largest part.
func (v *convolution) gradLayout() (l correlation, b layout, largest pixels) {
	l, largest = v.forward(), v.pixelPart(0)
	b = l.layout()
	// of another width a vector that is not masked would read behind the end
	b.inPlace = b.inPlace && v.c%16 == 0 && v.kind == tile.Numbers
	b.rowSize = b.colSize * ((largest.cols-1)*b.colStep + l.s)
	b.images, b.rows = largest.images, largest.rows
	return l, b, largest
}

// copySize returns the numbers of the copied part of x: a vector that is not masked reads behind
// it.
func (b *layout) copySize(l *correlation) int {
	if b.inPlace {
		return 0
	}
	return b.blockSize(l) + 16
}

// transposesGradient reports whether to compute the transpose of dW: if a row of the filter covers
// so few numbers that lanes would be idle.
func (v *convolution) transposesGradient() bool {
	see := v.s * v.c
	return see < 4*maxPanel && roundUp(see, 16)*v.k > see*roundUp(v.k, 16)
}

func packedWeightGradScratch(v *convolution) int {
	l, b, largest := v.gradLayout()
	block, depth := b.copySize(&l), largest.count()
	if v.kind != tile.Numbers {
		depth = largest.pairs()
	}
	rows, columns := v.packedSizes(depth)
	switch {
	case v.readsRows():
		return block + columns + v.rowOfPairs(&b) + v.k*(tile.Spread(depth)+pairRowsAtOnce)
	case v.kind != tile.Numbers:
		return block + rows + columns + v.rowOfPairs(&b) + depth*v.k
	case v.transposesGradient():
		return block + depth*roundUp(v.k, maxPanel) + v.r*v.s*v.c*v.k
	}
	return block + rows + columns
}

// packedWeightGradient is plainWeightGradient with the micro-kernels.
func packedWeightGradient(s *tile.Set, v *convolution, x, dy, dw, scratch []float32, part, of int) {
	l, b, largest := v.gradLayout()
	d := weightGrad{Set: s, v: *v, corr: l, layout: b, tile: tileArgsPool.Get().(*tile.Args), x: x, dy: dy, dw: dw}
	size := b.copySize(&l)
	d.blockBuf, d.packed = scratch[:size], scratch[size:]
	switch {
	case v.kind != tile.Numbers:
		d.takePacked(largest.pairs())
		n := v.rowOfPairs(&b)
		d.row, d.packed = d.packed[:n], d.packed[n:]
		if v.readsRows() {
			d.pairsApart = tile.Spread(largest.pairs())
		}
		d.from, d.to = kernel.SplitUnits(part, of, v.k, 2)
	case v.transposesGradient():
		n := largest.count() * roundUp(v.k, maxPanel)
		d.packed, d.transposed = d.packed[:n], d.packed[n:]
		d.from, d.to = kernel.SplitUnits(part, of, l.r*d.transposedStrips(), 1)
	default:
		d.takePacked(largest.count())
		d.from, d.to = kernel.SplitUnits(part, of, v.k, 1)
	}
	if d.from < d.to {
		d.run()
	}
	*d.tile = tile.Args{} // so that the pool keeps no operand alive
	tileArgsPool.Put(d.tile)
}

// transposedStrips returns the number of strips of the transpose for a row of the filter.
func (d *weightGrad) transposedStrips() int {
	high := len(d.Tiles)
	return (d.corr.s*d.v.c + high - 1) / high
}

// run adds the parts of the pixels one by one.
func (d *weightGrad) run() {
	v := &d.v
	images, rows, cols := v.pixelParts()
	all := images * rows * cols
	for m := range all {
		d.part = v.pixelPart(m)
		d.loadBlock()
		d.loadPairs()
		if m+1 < all {
			d.prefetch = d.prefetchFor(v.pixelPart(m + 1))
		}
		*d.tile = tile.Args{Alpha: 1, Beta: betaOf(m)}
		if d.transposed != nil {
			d.addTransposed()
		} else {
			d.add()
		}
	}
	if d.transposed != nil {
		d.storeTransposed()
	}
}

// loadBlock sets the block to the pixels of x that the part reads: x itself, if its columns are
// contiguous, or a copy.
func (d *weightGrad) loadBlock() {
	if !d.layout.inPlace {
		d.block = d.blockBuf
		d.fill()
		return
	}
	d.layout.rowSize = d.part.cols * d.layout.colSize
	d.block = d.x[((d.part.n*d.corr.rows+d.part.i)*d.corr.cols+d.part.j)*d.corr.channels:]
}

// prefetchFor returns a prefetcher of the operands of the next part.
func (d *weightGrad) prefetchFor(x pixels) prefetcher {
	begin := ((x.n*d.v.p+x.i)*d.v.q + x.j) * d.v.k
	dy := d.dy[d.v.gradWords(begin):d.v.gradWords(begin+x.count()*d.v.k)]
	top := max(0, d.corr.firstRow+x.i*d.corr.stride)
	bottom := min(d.corr.rows, d.corr.firstRow+(x.i+x.rows-1)*d.corr.stride+d.corr.r)
	row := d.corr.cols * d.corr.channels
	if d.v.half.Input(0) {
		row /= 2
	}
	high, wide := len(d.Tiles), 2*d.Lanes
	outputs := d.to - d.from
	if d.transposed != nil {
		outputs = d.v.k
	}
	tiles := d.corr.r * ((d.corr.s*d.v.c + wide - 1) / wide) * ((outputs + high - 1) / high)
	return newPrefetcher(dy, d.x[(x.n*d.corr.rows+top)*row:((x.n+x.images-1)*d.corr.rows+bottom)*row], tiles)
}

// fill copies the pixels of x that the part reads to the block, and sets the row size of the
// layout.
func (d *weightGrad) fill() {
	cols := (d.part.cols-1)*d.layout.colStep + d.corr.s
	d.layout.rowSize = cols * d.layout.colSize
	to := d.block
	write := d.corr.copyRow
	if d.row != nil {
		write = d.pairRow
		d.layout.rowSize = ((d.part.cols-1)/2*2*d.layout.colStep + d.corr.s) * d.layout.colSize
	}
	for n := range d.part.images {
		for m := range d.layout.height(&d.corr, d.part.rows) {
			i := d.part.i*d.corr.stride + m
			if d.corr.r == 1 {
				i = (d.part.i + m) * d.corr.stride
			}
			write(to, d.x, d.part.n+n, d.corr.firstRow+i, d.corr.firstCol+d.part.j*d.corr.stride, cols,
				d.layout.copyStride, d.layout.colSize)
			to = to[d.layout.rowSize:]
		}
	}
}

// columns returns how the pixels of the part lie in the block.
func (d *weightGrad) columns() blockPixels {
	x := blockPixels{cols: d.part.cols, rows: d.part.rows, images: d.part.images}
	x.next = 4 * d.layout.colStep * d.layout.colSize
	if d.row != nil {
		x.next, x.cols = 2*x.next, (x.cols+1)/2
	}
	x.jump = 4*d.layout.rowStep*d.layout.rowSize - x.cols*x.next
	x.gap = 4 * (d.layout.height(&d.corr, d.part.rows) - d.part.rows*d.layout.rowStep) * d.layout.rowSize
	return x
}

func (d *weightGrad) gradOffset() int { return ((d.part.n*d.v.p+d.part.i)*d.v.q + d.part.j) * d.v.k }

// add adds the part to dW. Both operands are read in place, since their columns are contiguous, or
// are packed.
func (d *weightGrad) add() {
	t, outputs, see := d.tile, d.v.k, d.corr.s*d.v.c
	t.ARow, t.ACol, t.CRow = 4, 4*outputs, 4*d.corr.r*see
	x := d.columns()
	t.K, t.Runs, t.Groups = x.cols, x.rows, x.images
	t.BRow, t.BJump, t.BGap = x.next, x.jump, x.gap
	wide, dy, apart := 2*d.Lanes, d.packed, 1
	if d.row == nil {
		dy = d.dy[d.gradOffset():]
	}
	if d.pairsApart > 0 {
		apart = d.pairsApart
		t.ARow, t.ACol = 4*apart, 4
	}
	count := d.to - d.from
	packsB := len(d.panel) > 0 && (count >= minPackRows || d.pairsApart > 0)
	if packsB {
		t.K, t.Runs, t.Groups, t.BRow, t.BJump, t.BGap = x.count(), 1, 1, 4*wide, 0, 0
	}
	groups := (count + gradRows - 1) / gradRows
	for group := range groups {
		k, rows := kernel.Split(group, groups, count)
		k += d.from
		a := d.gradientRows(dy[k*apart:], rows, x.count())
		for r := range d.corr.r {
			for at := 0; at < see; at += wide {
				vectors, from := 1, d.block[r*d.layout.rowSize+at:]
				if t.Last = min(wide, see-at); t.Last > d.Lanes {
					vectors, t.Last = 2, t.Last-d.Lanes
				}
				if t.B = &from[0]; packsB {
					x.pack(d.panel, wide, from, min(wide, see-at))
					t.B = &d.panel[0]
				}
				ahead := prefetchedColumns{&from[0], x.next}
				if x.jump != 0 || x.gap != 0 || see-at <= wide {
					ahead = prefetchedColumns{}
				}
				d.addPanel(vectors, a, rows, k*d.corr.r*see+r*see+at, ahead)
			}
		}
	}
}

// addPanel computes the columns of a panel, for some rows, strip by strip. It is given where the
// panel begins in dW.
func (d *weightGrad) addPanel(vectors int, a gradientRows, rows, place int, ahead prefetchedColumns) {
	t, apart := d.tile, d.corr.products()
	strips := (rows + len(d.Tiles) - 1) / len(d.Tiles)
	for s := range strips {
		first, height := kernel.Split(s, strips, rows)
		c, at := place+first*apart, first*a.apart
		if a.size > 0 {
			at = s * a.size
		}
		t.A, t.C = &a.data[at], &d.dw[c]
		if half := (height + 1) / 2; height > 1 {
			t.A2, t.C2 = &a.data[at+half*a.apart], &d.dw[c+half*apart]
		}
		// a line of the next columns from each of two strips
		if s < 2 && s < strips-1 && ahead.first != nil {
			ahead.setNext(t, (2+s)*d.Lanes)
		} else {
			d.prefetch.setNext(t, d.part.count())
		}
		d.Tiles[height-1][vectors-1](t)
	}
}

// addTransposed adds the part to the transpose of dW.
func (d *weightGrad) addTransposed() {
	t, depth, outputs, see, wide := d.tile, d.part.count(), d.v.k, d.corr.s*d.v.c, 2*d.Lanes
	b, panel := d.dy[d.gradOffset():], wide
	t.ARow, t.BRow, t.CRow = 4, 4*outputs, 4*outputs
	if !d.Masked && outputs%d.Lanes != 0 { // or it would read behind the end
		tile.PackCopy(d.packed, wide*depth, wide, tile.ColMajor(b, outputs), wide, outputs/wide, depth)
		if whole := outputs / wide * wide; whole < outputs {
			tile.PackCopy(d.packed[whole*depth:], wide*depth, wide, tile.ColMajor(b[whole:], outputs), outputs-whole,
				1, depth)
		}
		b, panel, t.BRow = d.packed, wide*depth, 4*wide
	}
	t.K, t.Runs, t.Groups = d.part.cols, d.part.rows, d.part.images
	x := d.columns()
	t.ACol, t.AJump, t.AGap = x.next, x.jump, x.gap
	strips := d.transposedStrips()
	for strip := d.from; strip < d.to; strip++ {
		r := strip / strips
		first, height := kernel.Split(strip%strips, strips, see)
		from, half := r*d.layout.rowSize+first, (height+1)/2
		t.A = &d.block[from]
		if height > 1 {
			t.A2 = &d.block[from+half]
		}
		for at := 0; at < outputs; at += wide {
			c := (r*see+first)*outputs + at
			t.B, t.C = &b[at/wide*panel], &d.transposed[c]
			if height > 1 {
				t.C2 = &d.transposed[c+half*outputs]
			}
			vectors := 1
			if t.Last = min(wide, outputs-at); t.Last > d.Lanes {
				vectors, t.Last = 2, t.Last-d.Lanes
			}
			d.prefetch.setNext(t, depth)
			d.Tiles[height-1][vectors-1](t)
		}
	}
}

// storeTransposed writes the computed part of dW.
func (d *weightGrad) storeTransposed() {
	outputs, all, see, strips := d.v.k, d.corr.r*d.corr.s*d.v.c, d.corr.s*d.v.c, d.transposedStrips()
	begin := func(strip int) int {
		first, _ := kernel.Split(strip%strips, strips, see)
		return strip/strips*see + first
	}
	from, to := begin(d.from), begin(d.to)
	for k := range outputs {
		for m := from; m < to; m++ {
			d.dw[k*all+m] = d.transposed[m*outputs+k]
		}
	}
}
