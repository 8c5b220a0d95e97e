//go:build !noasm

package cpu

import "sync"

// Blocks of op(A) and op(B) that are worked on at a time: a strip of A stays in the first cache, the columns of B in the second.
const (
	blockRows = 560 // a multiple of the height of the highest tile
	blockCols = 256
	stripRows = 16 // distance of columns of a packed strip of A
)

// workspace is the room for packed operands. One call has one; the pool keeps them, so that calls allocate nothing.
type workspace struct {
	a, b []float32
	tile tileArgs
}

var workspaces = sync.Pool{New: func() any {
	const strips = blockRows/6 + 1 // of the lowest of the highest tiles
	return &workspace{a: aligned(strips * stripRows * gemmDepth), b: aligned(blockCols * gemmDepth)}
}}

// job is one call.
type job struct {
	*tileSet
	*workspace
	n            int
	a, b, c      view
	packA, packB bool
}

// product is gemm without its checks.
func (s *tileSet) product(m, n, k int, alpha float32, a, b view, beta float32, c view) {
	w := workspaces.Get().(*workspace)
	w.tile = tileArgs{ldc: 4 * c.rs, runs: 1, alpha: alpha}
	j := job{s, w, n, a, b, c, worthPackingA(a, n), worthPackingB(b, m)}
	blocks := (m + blockRows - 1) / blockRows
	for at := range blocks {
		i, rows := share(at, blocks, m)
		scale := beta
		for p := 0; p < k; p += gemmDepth {
			j.block(i, rows, p, min(gemmDepth, k-p), scale)
			scale = 1
		}
	}
	w.tile = tileArgs{} // so that the pool keeps no operand alive
	workspaces.Put(w)
}

// A page of memory holds that many numbers. Rows so far apart compete for the same lines of a cache.
const page = 1024

// worthPackingA says whether op(A) is to be packed. The micro-kernels read it in place at nearly the same speed, unless its rows meet in
// the cache.
func worthPackingA(a view, n int) bool { return max(a.rs, a.cs)%page == 0 && n >= 4*32 }

// worthPackingB says whether op(B) is to be packed. They need the columns side by side, and where there are many rows of C to share the
// cost, rows that lie together.
func worthPackingB(b view, m int) bool { return b.cs != 1 || m >= 512 || b.rs%page == 0 && m >= 64 }

// block adds the products p to p+depth to the given rows of C.
func (j *job) block(i, rows, p, depth int, beta float32) {
	strips := (rows + len(j.tiles) - 1) / len(j.tiles)
	if j.packA {
		j.packStrips(j.a.from(i, p), strips, rows, depth)
	}
	for col := 0; col < j.n; col += blockCols {
		cols := min(blockCols, j.n-col)
		packed := j.panels(j.b.from(p, col), cols, depth)
		for s := range strips {
			first, height := share(s, strips, rows)
			a := j.a.from(i+first, p)
			if j.packA {
				a = view{j.workspace.a[s*stripRows*depth:], 1, stripRows}
			}
			j.strip(height, depth, a, j.b.from(p, col), cols, packed, beta, j.c.from(i+first, col))
		}
	}
}

// packStrips packs op(A): strip s at s·stripRows·depth, its columns stripRows apart.
func (j *job) packStrips(a view, strips, rows, depth int) {
	dst, size := j.workspace.a, stripRows*depth
	if a.rs == 1 {
		low, high := rows/strips, rows%strips
		packAlong(dst, size, stripRows, a, low+1, high, depth)
		packAlong(dst[high*size:], size, stripRows, a.from(high*(low+1), 0), low, strips-high, depth)
		return
	}
	for s := range strips {
		first, height := share(s, strips, rows)
		packAcross(dst[s*size:], stripRows, a.from(first, 0), height, depth)
	}
}

// panels packs columns of op(B), as many as are to be packed, and returns the first: the panel that begins at column c is at c·depth.
func (j *job) panels(b view, cols, depth int) (first int) {
	wide := 2 * j.lanes
	if !j.packB {
		if j.masked {
			return cols
		}
		first = cols / wide * wide
	}
	across := view{b.data, b.cs, b.rs}
	dst := j.workspace.b
	if across.rs == 1 {
		full := cols/wide - first/wide
		packAlong(dst[first*depth:], wide*depth, wide, across.from(first, 0), wide, full, depth)
		first += full * wide
		if first < cols {
			packAlong(dst[first*depth:], wide*depth, wide, across.from(first, 0), cols-first, 1, depth)
		}
		return first - full*wide
	}
	for at := first; at < cols; at += wide {
		packAcross(dst[at*depth:], wide, across.from(at, 0), min(wide, cols-at), depth)
	}
	return first
}

// strip computes a strip of C, tile after tile. Columns from packed on are in the workspace.
func (j *job) strip(height, depth int, a, b view, cols, packed int, beta float32, c view) {
	wide, t := 2*j.lanes, &j.tile
	tiles := &j.tiles[height-1]
	t.setA(a, height, depth)
	// The next strip, in as many steps as there are products: its rows where they follow one another, else its piece of every column.
	ahead, step := height*a.rs, height*a.rs/depth
	switch {
	case j.packA:
		ahead, step = stripRows*depth, stripRows
	case a.rs == 1:
		step = a.cs
	}
	t.ahead, t.step, t.beta = 4*ahead, 4*step, beta
	half := (height + 1) / 2 * c.rs
	for at := 0; at < cols; at += wide {
		if t.b, t.brs = &j.workspace.b[at*depth], 4*wide; at < packed {
			t.b, t.brs = &b.data[at], 4*b.rs
		}
		t.c = &c.data[at]
		if height > 1 {
			t.c2 = &c.data[half+at]
		}
		vectors := 1
		if t.last = min(wide, cols-at); t.last > j.lanes {
			vectors, t.last = 2, t.last-j.lanes
		}
		tiles[vectors-1](t)
	}
}

// packAcross writes rows×depth elements of src, whose rows are contiguous, transposed: dst[p·ds+r] = src[r][p]. Between rows and the
// next multiple of eight it leaves anything.
func packAcross(dst []float32, ds int, src view, rows, depth int) {
	const side = 8 // of the square that transpose8AVX2 takes
	whole := depth / side * side
	for r := 0; r < rows; r += side {
		if whole > 0 {
			transpose8AVX2(&dst[r], ds, &src.data[r*src.rs], src.rs, min(side, rows-r), whole/side)
		}
		for l := r; l < min(r+side, rows); l++ {
			for p := whole; p < depth; p++ {
				dst[p*ds+l] = src.data[l*src.rs+p]
			}
		}
	}
}

// packAhead is how many rows in advance packAlong asks for.
const packAhead = 8

// packAlong writes pieces of so many rows of src, whose columns are contiguous: dst[i·size+p·ds+r] = src[i·rows+r][p]. Between rows and
// the next multiple of eight it leaves anything.
func packAlong(dst []float32, size, ds int, src view, rows, pieces, depth int) {
	if pieces == 0 {
		return
	}
	read := (rows + 7) &^ 7
	for p := range depth {
		to, from := dst[p*ds:], src.data[p*src.cs:]
		i := 0
		if len(from) >= read { // as many as can be read without reading past the end
			i = min(pieces, (len(from)-read)/rows+1)
			spreadAVX2(&to[0], size, &from[0], rows, i, read/8, packAhead*src.cs)
		}
		for ; i < pieces; i++ {
			copy(to[i*size:][:rows], from[i*rows:])
		}
	}
}
