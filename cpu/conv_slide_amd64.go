//go:build !noasm

package cpu

// What of a slide is held in the second cache, in numbers.
const (
	slideWeights = 160 << 10 // packed weights up to so many are packed once, and then a block of the images is
	slideBlock   = 64 << 10  // as large as this. Where there are more of them, they are packed piece by piece
	slideColumns = 256       // as wide as this, for a block
	slideMany    = 1 << 20   // as large as this: weights that are many come with images that are small.
)

// blocks says how the input of a slide is copied to a block of the workspace: with its padding, and
// as lines one after the other. What a row of the filter sees is one run of a line.
type blocks struct {
	whole        bool // all weights are packed once
	inPlace      bool // there is nothing to copy
	images, rows int  // of the output, of the largest block
	take         int  // distance of the columns that are copied
	pitch, line  int  // distance of columns and of rows in the block
	near, under  int  // columns and rows from a pixel to the next
}

// blocks chooses them.
func (l *slide) blocks() blocks {
	b := blocks{whole: l.products()*roundUp(l.k, widest) <= slideWeights, take: 1, pitch: l.deep, near: l.step,
		under: l.step}
	cols := (l.q-1)*l.step + l.s
	b.inPlace = l.isProduct()
	if l.s == 1 { // what lies between is not read
		cols, b.take, b.near = l.q, l.step, 1
		if l.deep%512 == 0 && !b.inPlace { // or the columns would meet in the cache
			b.pitch += 16
		}
	}
	if l.r == 1 {
		b.under = 1
	}
	b.line = cols * b.pitch
	limit := slideMany
	if b.whole {
		limit = slideBlock
	}
	if image := b.height(l, l.p) * b.line; image <= limit {
		b.images, b.rows = min(l.images, limit/image), l.p
		return b
	}
	rows := max(1, (limit/b.line-l.r)/b.under+1)
	parts := (l.p + rows - 1) / rows
	b.images, b.rows = 1, (l.p+parts-1)/parts
	return b
}

// isProduct says whether every pixel reads just the one in its place.
func (l *slide) isProduct() bool {
	return l.r == 1 && l.s == 1 && l.step == 1 && l.top == 0 && l.left == 0 && l.p == l.rows && l.q == l.cols
}

// height is how many lines the given number of rows of the output read.
func (b *blocks) height(l *slide, rows int) int { return (rows-1)*b.under + l.r }

// room is how many numbers the largest block takes, up to where a cache line ends.
func (b *blocks) room(l *slide) int { return roundUp(b.images*b.height(l, b.rows)*b.line, 16) }

func slidePackedScratch(l *slide) int {
	b := l.blocks()
	if b.inPlace {
		return b.weights(l)
	}
	return b.room(l) + b.weights(l)
}

// weights is the room for packed weights.
func (b *blocks) weights(l *slide) int {
	if b.whole {
		return l.products() * roundUp(l.k, widest)
	}
	return min(gemmDepth, l.products()) * min(slideColumns, roundUp(l.k, widest))
}

// slider is a slide at work.
type slider struct {
	slide
	*tileSet
	blocks
	tile               *tileArgs
	src, w, out        []float32
	copied, packed     []float32 // input and weights
	block              []float32 // what the input is read from
	n, images, i, rows int       // what of the output is read from the block
}

// slide is slidePlain with the micro-kernels.
func slideOn(s *tileSet, l *slide, src, w, out, scratch []float32) {
	d := slider{slide: *l, tileSet: s, blocks: l.blocks(), tile: tileArgsPool.Get().(*tileArgs), src: src, w: w,
		out: out}
	if d.packed = scratch; !d.inPlace {
		size := d.blocks.room(l)
		d.copied, d.packed = scratch[:size], scratch[size:]
	}
	*d.tile = tileArgs{ars: 4 * d.near * d.pitch, acs: 4, brs: 4 * 2 * s.lanes, groups: 1, ldc: 4 * l.pixel, alpha: 1}
	if d.whole {
		for m := range l.chunks() {
			part, before := l.chunk(m)
			d.pack(d.packed[before*roundUp(l.k, widest):], part.depth(), before, 0, l.k)
		}
	}
	for n := 0; n < l.images; n += d.blocks.images {
		d.n, d.images = n, min(d.blocks.images, l.images-n)
		for i := 0; i < l.p; i += d.blocks.rows {
			d.i, d.rows = i, min(d.blocks.rows, l.p-i)
			d.fill()
			d.compute()
		}
	}
	*d.tile = tileArgs{} // so that the pool keeps no operand alive
	tileArgsPool.Put(d.tile)
}

// fill makes the block what the output's rows read: a copy of it with its padding, or the input
// itself.
func (d *slider) fill() {
	if d.inPlace {
		d.block = d.src[(d.n*d.slide.rows+d.i)*d.cols*d.deep:]
		return
	}
	d.block = d.copied
	cols := d.line / d.pitch
	to := d.block
	for n := range d.images {
		for m := range d.height(&d.slide, d.rows) {
			i := d.i*d.step + m
			if d.r == 1 {
				i = (d.i + m) * d.step
			}
			d.copyLine(to, d.src, d.n+n, d.top+i, d.left, cols, d.take, d.pitch)
			to = to[d.line:]
		}
	}
}

// compute writes the pixels that the block is for.
func (d *slider) compute() {
	if d.whole {
		for m := range d.chunks() {
			_, before := d.slide.chunk(m)
			d.chunk(m, d.packed[before*roundUp(d.k, widest):], 0, d.k)
		}
		return
	}
	for k := 0; k < d.k; k += slideColumns {
		cols := min(slideColumns, d.k-k)
		for m := range d.chunks() {
			part, before := d.slide.chunk(m)
			d.pack(d.packed, part.depth(), before, k, cols)
			d.chunk(m, d.packed, k, cols)
		}
	}
}

// chunk adds chunk m to the columns from k on.
func (d *slider) chunk(m int, packed []float32, k, cols int) {
	part, _ := d.slide.chunk(m)
	t := d.tile
	t.k, t.runs, t.ajump, t.beta = part.k, part.runs, 4*(d.line-part.k), betaOf(m)
	origin := part.row*d.line + part.skip
	if high := len(d.tiles); 2*d.q <= high {
		d.pairs(origin, part.depth(), packed, k, cols)
	} else {
		parts := (d.q + high - 1) / high
		for row := range d.images * d.rows {
			a, c := d.rowAt(row)
			for s := range parts {
				j, height := share(s, parts, d.q)
				t.ahead, t.step = height*t.ars, height*t.ars/part.depth() // the next strip
				d.segment(j, height, part.depth(), a+origin, packed, c+k, cols)
			}
		}
	}
}

// segment computes the pixels from column j on of the row that begins at a in the block and at c in
// the output.
func (d *slider) segment(j, height, depth, a int, packed []float32, c, cols int) {
	t, half, next := d.tile, (height+1)/2, d.near*d.pitch
	a, c = a+j*next, c+j*d.pixel
	t.a = &d.block[a]
	if height == 1 {
		d.strip(1, depth, packed, c, c, cols)
		return
	}
	t.a2 = &d.block[a+half*next]
	d.strip(height, depth, packed, c, c+half*d.pixel, cols)
}

// pairs computes rows that are short two by two, one in each half of a tile.
func (d *slider) pairs(origin, depth int, packed []float32, k, cols int) {
	t, rows := d.tile, d.images*d.rows
	t.ahead, t.step = 8*d.under*d.line, 2*d.q*t.ars/depth
	for row := 0; row < rows; row += 2 {
		a, c := d.rowAt(row)
		if row+1 == rows {
			d.segment(0, d.q, depth, a+origin, packed, c+k, cols)
			return
		}
		a2, c2 := d.rowAt(row + 1)
		t.a, t.a2 = &d.block[a+origin], &d.block[a2+origin]
		d.strip(2*d.q, depth, packed, c+k, c2+k, cols)
	}
}

// rowAt is where a row of the block's part of the output begins, in the block and in the output.
func (d *slider) rowAt(row int) (block, out int) {
	n, i := row/d.rows, row%d.rows
	return (n*d.height(&d.slide, d.rows) + i*d.under) * d.line, d.at(d.n+n, d.i+i, 0)
}

// strip computes some pixels, panel after panel.
func (d *slider) strip(height, depth int, packed []float32, c, c2, cols int) {
	wide, t := 2*d.lanes, d.tile
	tiles := &d.tiles[height-1]
	for at := 0; at < cols; at += wide {
		t.b, t.c, t.c2 = &packed[at*depth], &d.out[c+at], &d.out[c2+at]
		vectors := 1
		if t.last = min(wide, cols-at); t.last > d.lanes {
			vectors, t.last = 2, t.last-d.lanes
		}
		tiles[vectors-1](t)
	}
}

// pack writes the weights of so many products of the columns from k on: the panel that begins at
// column c is at c·depth.
func (d *slider) pack(dst []float32, depth, before, k, cols int) {
	wide := 2 * d.lanes
	if !d.turned {
		all := d.products()
		for at := 0; at < cols; at += wide {
			packAcross(dst[at*depth:], wide, view{d.w[(k+at)*all+before:], all, 1}, min(wide, cols-at), depth)
		}
		return
	}
	apart := d.wr * d.ws * d.wc
	for p := 0; p < depth; {
		tap, channel := (before+p)/d.deep, (before+p)%d.deep
		n := min(depth-p, d.deep-channel)
		from := d.weight(tap/d.s, tap%d.s, channel) + k
		full := cols / wide
		packAlong(dst[p*wide:], wide*depth, wide, view{d.w[from:], 1, apart}, wide, full, n)
		if rest := cols - full*wide; rest > 0 {
			packAlong(dst[full*wide*depth+p*wide:], wide*depth, wide, view{d.w[from+full*wide:], 1, apart}, rest, 1, n)
		}
		p += n
	}
}
