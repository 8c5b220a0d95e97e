package gemm

import (
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// directProduct is C = alpha·A·B + beta·C without packed factors: the micro-kernels read all
// operands where they are. Its elements have the bits of [Multiply]. The memory of each row of A, B
// and C, or of each column of a transposed A, ends with a whole vector, or more.
type directProduct struct {
	m, n, k     int
	a, b, c     tile.View
	alpha, beta float32
	old         tile.View // the matrix that beta multiplies, in memory like C
	symmetric   bool      // C = Cᵀ: the elements above the diagonal are copies of the others
}

const (
	// directRows is how many rows of C are computed with a block of B. A strip of A has as many lines
	// of the first-level cache as rows, and its block is read again from the second-level cache.
	directRows = 224
	// symmetricStrip is the height of strips of a symmetric product in rows, with vectors of 16: its
	// tiles then have the fewest columns above the diagonal. They are as fast as higher ones.
	symmetricStrip = 8
	// mostUnfetched is the most numbers of A that the second-level cache holds with B.
	mostUnfetched = 1 << 17
)

// run computes the product. The goroutines of o share blocks of rows, the longest ones first.
func (d *directProduct) run(o *kernel.Args) {
	work, unit := d.m*d.n*d.k, mirrorUnit
	if d.symmetric {
		work /= 2
	} else if s := tile.Active(); s != nil {
		unit = len(s.Tiles)
	}
	parts := 1
	if threads := o.Threads(); threads > 1 {
		parts = max(1, min(4*threads, work/tile.MinParallelWork))
	}
	height := ((d.m+parts-1)/parts + unit - 1) / unit * unit
	blocks := (d.m + height - 1) / height
	if blocks == 1 {
		d.rows(0, d.m)
		if d.symmetric {
			mirror(d.c, 0, d.m)
		}
		return
	}
	block := func(part int) (from, to int) { from = (blocks - 1 - part) * height; return from, min(from+height, d.m) }
	o.Parallel(blocks, func(_ *kernel.Args, part, _ int) { d.rows(block(part)) })
	if d.symmetric {
		o.Parallel(blocks, func(_ *kernel.Args, part, _ int) {
			from, to := block(part)
			mirror(d.c, from, to)
		})
	}
}

// rows computes some rows of C, of a symmetric product the elements in columns up to the end of the
// square of mirrorUnit rows on the diagonal.
func (d *directProduct) rows(from, to int) {
	s := tile.Active()
	if s == nil {
		d.plainRows(from, to)
		return
	}
	w, chunks := workspaces.Get().(*workspace), tile.Chunks(d.k)
	t := &w.tile
	t.ARow, t.ACol, t.BRow, t.CRow = 4*d.a.RowStride, 4*d.a.ColStride, 4*d.b.RowStride, 4*d.c.RowStride
	t.Runs, t.Alpha = 1, d.alpha
	for ; from < to; from += directRows {
		end := min(from+directRows, to)
		cols := d.columns(end)
		for chunk := range chunks {
			var p int
			p, t.K = kernel.Split(chunk, chunks, d.k)
			t.Beta, t.Old = 1, 0
			if chunk == 0 {
				if t.Beta = d.beta; t.Beta != 0 {
					t.Old = int(uintptr(unsafe.Pointer(&d.old.Data[0])) - uintptr(unsafe.Pointer(&d.c.Data[0])))
				}
			}
			for col := 0; col < cols; col += blockCols {
				d.block(s, t, from, end, p, col, d.following(p, t.K, col, cols))
			}
		}
	}
	w.tile = tile.Args{} // so that the pool keeps no operand alive
	workspaces.Put(w)
}

// columns returns the number of columns of C that are computed above a row.
func (d *directProduct) columns(row int) int {
	if d.symmetric {
		return min(d.n, (row+mirrorUnit-1)/mirrorUnit*mirrorUnit)
	}
	return d.n
}

// following returns the lines of B of the block that follows in a large product: the next columns,
// or the next products.
func (d *directProduct) following(p, depth, col, cols int) cacheLines {
	if d.m*d.k <= mostUnfetched {
		return cacheLines{}
	}
	if col += blockCols; col >= cols {
		p, col = p+depth, 0
	}
	if p >= d.k {
		p = 0
	}
	return linesOf(d.b.From(p, col), min(depth, d.k-p), min(blockCols, cols-col))
}

// block adds the products from p on to the tiles of some rows and at most blockCols columns of C. In
// a large product the tiles prefetch the block of B that follows, and the last one of a strip the
// next strip of A.
func (d *directProduct) block(s *tile.Set, t *tile.Args, from, to, p, col int, ahead cacheLines) {
	highest, wide := len(s.Tiles), 2*s.Lanes
	if d.symmetric && s.Lanes > symmetricStrip {
		highest = symmetricStrip
	}
	strips, far := (to-from+highest-1)/highest, d.m*d.k > mostUnfetched
	a, b, c := d.a.Data[p*d.a.ColStride:], d.b.Data[p*d.b.RowStride:], d.c.Data
	for strip := range strips {
		i, height := kernel.Split(strip, strips, to-from)
		i += from
		half := min(i+(height+1)/2, d.m-1) // the second half has no rows if height is 1
		t.A, t.A2 = &a[i*d.a.RowStride], &a[half*d.a.RowStride]
		first, second := i*d.c.RowStride, half*d.c.RowStride
		at, tiles := col, &s.Tiles[height-1]
		left := min(blockCols, d.columns(i+height)-col)
		for t.Last = s.Lanes; left > wide; left -= wide {
			t.B, t.C, t.C2 = &b[at], &c[first+at], &c[second+at]
			if far {
				setPrefetch(t, ahead.next(), ahead.step)
			}
			tiles[1](t)
			at += wide
		}
		if left <= 0 {
			continue
		}
		t.B, t.C, t.C2 = &b[at], &c[first+at], &c[second+at]
		if far {
			t.Ahead, t.Step = height*t.ARow, max(t.ACol, height*t.ARow/t.K)
		}
		if t.Last = left; left > s.Lanes {
			t.Last -= s.Lanes
			tiles[1](t)
		} else {
			tiles[0](t)
		}
	}
}

// plainRows is rows in Go.
func (d *directProduct) plainRows(from, to int) {
	c := d.c.From(from, 0)
	if d.beta != 0 {
		for i := from; i < to; i++ {
			copy(d.c.From(i, 0).Data[:d.n], d.old.From(i, 0).Data)
		}
	}
	plainProduct(tile.Numbers, to-from, d.n, d.k, d.alpha, d.a.From(from, 0), d.b, d.beta, c, epilogue{})
}

// mirrorUnit is the number of rows that mirror copies as columns at a time.
const mirrorUnit = 8

// mirror copies some rows of the part of a symmetric matrix below its diagonal above it, from a
// multiple of mirrorUnit on. The squares of mirrorUnit rows on the diagonal are whole already, but
// for one that ends with the matrix.
func mirror(c tile.View, from, to int) {
	whole := to / mirrorUnit * mirrorUnit
	for i := from; i < whole; i += mirrorUnit {
		tile.PackTransposed(c.Data[i:], c.RowStride, c.From(i, 0), mirrorUnit, i)
	}
	for i := whole; i < to; i++ {
		for j := range i {
			c.Data[j*c.RowStride+i] = c.Data[i*c.RowStride+j]
		}
	}
}
