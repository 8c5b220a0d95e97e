//go:build !noasm

package cpu

// sumRows is how many rows of dW are worked on at a time: their part of dy stays in the second
// cache.
const sumRows = 266

// summer is a weight gradient at work. For one row of the filter, dW is a product of matrices:
// outputs by what a row of the filter sees, s·c columns that lie side by side in the padded input,
// with the pixels of the output between them.
type summer struct {
	*tileSet
	v           convolution
	l           slide // of the forward direction
	b           blocks
	part        pixels
	tile        *tileArgs
	x, dy, dw   []float32
	block, room []float32 // what x is read from, and where it is copied to
	packed      []float32 // dy, where dW is computed transposed
	feed        feed
	turned      []float32 // dW transposed, where that fills vectors better
	from, to    int       // the outputs to compute, or of the transpose the strips of all rows of the filter
}

// sumBlocks says how x is copied, and how large the largest part is.
func (v *convolution) sumBlocks() (l slide, b blocks, largest pixels) {
	l, largest = v.forward(), v.part(0)
	b = l.blocks()
	b.inPlace = b.inPlace && v.c%16 == 0 // or a vector that is not masked would read behind the end
	b.line = b.pitch * ((largest.cols-1)*b.near + l.s)
	b.images, b.rows = largest.images, largest.rows
	return l, b, largest
}

// copied is the room for the part of x that is copied: a vector that is not masked reads on behind
// it.
func (b *blocks) copied(l *slide) int {
	if b.inPlace {
		return 0
	}
	return b.room(l) + 16
}

// turns says whether to compute the transpose of dW: where what a row of the filter sees is short
// and would leave lanes idle.
func (v *convolution) turns() bool {
	see := v.s * v.c
	return see < 4*widest && roundUp(see, 16)*v.k > see*roundUp(v.k, 16)
}

func sumPackedScratch(v *convolution) int {
	l, b, largest := v.sumBlocks()
	block := b.copied(&l)
	if v.turns() {
		return block + largest.count()*roundUp(v.k, widest) + v.r*v.s*v.c*v.k
	}
	return block
}

// sum is sumPlain with the micro-kernels.
func sumOn(s *tileSet, v *convolution, x, dy, dw, scratch []float32, part, of int) {
	l, b, largest := v.sumBlocks()
	d := summer{tileSet: s, v: *v, l: l, b: b, tile: tileArgsPool.Get().(*tileArgs), x: x, dy: dy, dw: dw}
	size := b.copied(&l)
	d.room, d.packed = scratch[:size], scratch[size:]
	if v.turns() {
		room := largest.count() * roundUp(v.k, widest)
		d.packed, d.turned = d.packed[:room], d.packed[room:]
		d.from, d.to = portion(part, of, l.r*d.strips(), 1)
	} else {
		d.from, d.to = portion(part, of, v.k, 1)
	}
	if d.from < d.to {
		d.run()
	}
	*d.tile = tileArgs{} // so that the pool keeps no operand alive
	tileArgsPool.Put(d.tile)
}

// strips is how many strips of the transpose there are for a row of the filter.
func (d *summer) strips() int {
	high := len(d.tiles)
	return (d.l.s*d.v.c + high - 1) / high
}

// run adds one part of the pixels after the other.
func (d *summer) run() {
	v := &d.v
	images, rows, cols := v.parts()
	all := images * rows * cols
	for m := range all {
		d.part = v.part(m)
		d.look()
		if m+1 < all {
			d.feed = d.later(v.part(m + 1))
		}
		*d.tile = tileArgs{alpha: 1, beta: betaOf(m)}
		if d.turned != nil {
			d.addTurned()
		} else {
			d.add()
		}
	}
	if d.turned != nil {
		d.turnBack()
	}
}

// look makes the block what the part reads of x: x itself, where that has the columns side by side,
// or a copy.
func (d *summer) look() {
	if !d.b.inPlace {
		d.block = d.room
		d.fill()
		return
	}
	d.b.line = d.part.cols * d.b.pitch
	d.block = d.x[((d.part.n*d.l.rows+d.part.i)*d.l.cols+d.part.j)*d.l.deep:]
}

// later is what the next part will read.
func (d *summer) later(x pixels) feed {
	dy := d.dy[((x.n*d.v.p+x.i)*d.v.q+x.j)*d.v.k:][:x.count()*d.v.k]
	top := max(0, d.l.top+x.i*d.l.step)
	bottom := min(d.l.rows, d.l.top+(x.i+x.rows-1)*d.l.step+d.l.r)
	row := d.l.cols * d.l.deep
	high, wide := len(d.tiles), 2*d.lanes
	outputs := d.to - d.from
	if d.turned != nil {
		outputs = d.v.k
	}
	tiles := d.l.r * ((d.l.s*d.v.c + wide - 1) / wide) * ((outputs + high - 1) / high)
	return feedOf(dy, d.x[(x.n*d.l.rows+top)*row:((x.n+x.images-1)*d.l.rows+bottom)*row], tiles)
}

// fill copies what the part reads of x to the block, and leaves its measures in blocks.
func (d *summer) fill() {
	cols := (d.part.cols-1)*d.b.near + d.l.s
	d.b.line = cols * d.b.pitch
	to := d.block
	for n := range d.part.images {
		for m := range d.b.height(&d.l, d.part.rows) {
			i := d.part.i*d.l.step + m
			if d.l.r == 1 {
				i = (d.part.i + m) * d.l.step
			}
			d.l.copyLine(to, d.x, d.part.n+n, d.l.top+i, d.l.left+d.part.j*d.l.step, cols, d.b.take, d.b.pitch)
			to = to[d.b.line:]
		}
	}
}

// walk returns the way through the block from pixel to pixel, in bytes: the next one of a row, the
// jump to the next row, the gap between images.
func (d *summer) walk() (next, jump, gap int) {
	next = 4 * d.b.near * d.b.pitch
	jump = 4*d.b.under*d.b.line - d.part.cols*next
	gap = 4 * (d.b.height(&d.l, d.part.rows) - d.part.rows*d.b.under) * d.b.line
	return next, jump, gap
}

// first is where the part begins in dy.
func (d *summer) first() int {
	return ((d.part.n*d.v.p+d.part.i)*d.v.q + d.part.j) * d.v.k
}

// add adds the part to dW. Both factors are read where they are: their columns lie side by side.
func (d *summer) add() {
	t, outputs, see := d.tile, d.v.k, d.l.s*d.v.c
	t.ars, t.acs, t.ldc = 4, 4*outputs, 4*d.l.r*see
	t.k, t.runs, t.groups = d.part.cols, d.part.rows, d.part.images
	t.brs, t.bjump, t.bgap = d.walk()
	wide, dy := 2*d.lanes, d.dy[d.first():]
	count := d.to - d.from
	groups := (count + sumRows - 1) / sumRows
	for group := range groups {
		k, rows := share(group, groups, count)
		k += d.from
		for r := range d.l.r {
			for at := 0; at < see; at += wide {
				vectors := 1
				if t.last = min(wide, see-at); t.last > d.lanes {
					vectors, t.last = 2, t.last-d.lanes
				}
				t.b = &d.block[r*d.b.line+at]
				d.panel(vectors, dy[k:], rows, k*d.l.r*see+r*see+at, see-at-wide)
			}
		}
	}
}

// panel computes the columns that b begins, of the rows that a has, strip after strip. Their place
// in dW is given, and how many columns come after them.
func (d *summer) panel(vectors int, a []float32, rows, place, more int) {
	t, apart := d.tile, d.l.products()
	strips := (rows + len(d.tiles) - 1) / len(d.tiles)
	for s := range strips {
		first, height := share(s, strips, rows)
		c := place + first*apart
		t.a, t.c = &a[first], &d.dw[c]
		if half := (height + 1) / 2; height > 1 {
			t.a2, t.c2 = &a[first+half], &d.dw[c+half*apart]
		}
		// a line of the next columns from each of two strips
		if s < 2 && s < strips-1 && more > 0 && t.bjump == 0 && t.bgap == 0 {
			askBeside(t, (2+s)*d.lanes)
		} else {
			d.feed.give(t, d.part.count())
		}
		d.tiles[height-1][vectors-1](t)
	}
}

// addTurned adds the part to the transpose of dW.
func (d *summer) addTurned() {
	t, depth, outputs, see, wide := d.tile, d.part.count(), d.v.k, d.l.s*d.v.c, 2*d.lanes
	b, panel := d.dy[d.first():], wide
	t.ars, t.brs, t.ldc = 4, 4*outputs, 4*outputs
	if !d.masked && outputs%d.lanes != 0 { // or it would read behind the end
		packAlong(d.packed, wide*depth, wide, view{b, 1, outputs}, wide, outputs/wide, depth)
		if whole := outputs / wide * wide; whole < outputs {
			packAlong(d.packed[whole*depth:], wide*depth, wide, view{b[whole:], 1, outputs}, outputs-whole, 1, depth)
		}
		b, panel, t.brs = d.packed, wide*depth, 4*wide
	}
	t.k, t.runs, t.groups = d.part.cols, d.part.rows, d.part.images
	t.acs, t.ajump, t.agap = d.walk()
	strips := d.strips()
	for strip := d.from; strip < d.to; strip++ {
		r := strip / strips
		first, height := share(strip%strips, strips, see)
		from, half := r*d.b.line+first, (height+1)/2
		t.a = &d.block[from]
		if height > 1 {
			t.a2 = &d.block[from+half]
		}
		for at := 0; at < outputs; at += wide {
			c := (r*see+first)*outputs + at
			t.b, t.c = &b[at/wide*panel], &d.turned[c]
			if height > 1 {
				t.c2 = &d.turned[c+half*outputs]
			}
			vectors := 1
			if t.last = min(wide, outputs-at); t.last > d.lanes {
				vectors, t.last = 2, t.last-d.lanes
			}
			d.feed.give(t, depth)
			d.tiles[height-1][vectors-1](t)
		}
	}
}

// turnBack writes what there is of dW.
func (d *summer) turnBack() {
	outputs, all, see, strips := d.v.k, d.l.r*d.l.s*d.v.c, d.l.s*d.v.c, d.strips()
	begin := func(strip int) int {
		first, _ := share(strip%strips, strips, see)
		return strip/strips*see + first
	}
	from, to := begin(d.from), begin(d.to)
	for k := range outputs {
		for m := from; m < to; m++ {
			d.dw[k*all+m] = d.turned[m*outputs+k]
		}
	}
}
