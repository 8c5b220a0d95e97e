package gemm

import (
	"sync"
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// Block sizes: a strip of A stays in the first-level cache, and the columns of B of a block in the
// second. The rows of a block fit into the third if they are packed; more rows share the packing of
// B.
const (
	blockRows    = 1120 // a multiple of the height of the highest tile
	blockCols    = 256
	maxStripRows = 32 // the height of the highest tile, in whole vectors of eight
)

// stripRows is the distance of the columns of a packed strip of A: the height of the highest tile,
// rounded up to the number of rows that the packing writes at a time.
func stripRows(s *tile.Set) int { return (len(s.Tiles) + 7) &^ 7 }

// stripSize is the length of a packed strip. Packed strips and panels are one column longer than
// needed. Otherwise they would lie a multiple of 4 KB apart for the usual depth, and writing to all
// of them in turn would hit the same sets of the first-level cache.
func stripSize(s *tile.Set, depth int) int { return stripRows(s) * (depth + 1) }

// panelOffset is where the packed panel that begins at a column of op(B) lies.
func panelOffset(col, depth int) int { return col * (depth + 1) }

// workspace is memory for packed operands. Each call takes one from a pool, so that calls allocate
// nothing.
type workspace struct {
	a, b   []float32 // a grows when needed
	wholeB []float32 // all of op(B), if it is packed at once; grows when needed
	tile   tile.Args
}

var workspaces = sync.Pool{New: func() any { return &workspace{b: kernel.Aligned(panelOffset(blockCols, tile.Depth))} }}

// job is one call of blockedProduct.
type job struct {
	*tile.Set
	*workspace
	m, n, k      int
	parts        int // number of parts of the rows
	a, b, c      tile.View
	bytesB       kernel.ByteMatrix // replaces b if it has bytes
	packA, packB bool
	firstPacked  int       // the first column of the current block that is packed
	panelBuf     []float32 // the packed panels of the current block
	stripwise    bool      // each strip of C takes all of its products in turn
	packed       packedFactors
	epilogue     epilogue
	upcoming
}

// packedFactors are factors that are packed whole, chunk by chunk, or nil.
type packedFactors struct{ a, b []float32 }

// upcoming holds the operands that the tiles of a job prefetch.
type upcoming struct {
	nextStrip     unsafe.Pointer // the next strip of A: the lines to prefetch, nextStripStep bytes apart
	nextStripStep int
	nextRows      cacheLines // rows of op(A) of the next strip, to prefetch from memory
	nextBlock     cacheLines // the part of op(B) that the next block reads
	nextBytes     bytePrefetch
}

// block is a part of a job: products p to p+depth of rows×cols elements of C, from row i and column
// col on.
type block struct{ part, i, rows, chunk, p, depth, col, cols int }

// packedProduct computes a product with the micro-kernels of s, as its transpose if that is faster.
func packedProduct(s *tile.Set, m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View, then epilogue) {
	if worthTransposing(s, m, n, k, a, b, beta) {
		transposedProduct(s, m, n, k, alpha, a, kernel.ByteMatrix{}, b, c, then)
		return
	}
	blockedProduct(s, m, n, k, alpha, a, b, kernel.ByteMatrix{}, beta, c, then, packedFactors{})
}

// blockedProduct computes a product block by block. op(B) is b, or e if that has bytes. One of the
// factors may be packed already.
func blockedProduct(s *tile.Set, m, n, k int, alpha float32, a, b tile.View, e kernel.ByteMatrix, beta float32,
	c tile.View, then epilogue, packed packedFactors) {
	j := job{Set: s, m: m, n: n, k: k, a: a, b: b, c: c, bytesB: e, packA: packed.a != nil || shouldPackA(s, a, n),
		packed: packed, packB: packed.b != nil || e.Bytes != nil || shouldPackB(b, m), epilogue: then}
	j.run(alpha, beta)
}

// run computes the product.
func (j *job) run(alpha, beta float32) {
	w := workspaces.Get().(*workspace)
	w.tile = tile.Args{CRow: 4 * j.c.RowStride, Runs: 1, Alpha: alpha}
	j.workspace, j.panelBuf, j.parts = w, w.b, (j.m+blockRows-1)/blockRows
	if j.packsWholeB() {
		j.stripwise, j.parts = true, j.strips(j.m)
		if j.packed.b == nil {
			j.packWholeB()
		}
	}
	at := j.blockAt(0, 0, 0)
	j.prefetchFirstRows(&at)
	for at.rows > 0 {
		next := j.after(&at)
		j.block(&at, &next, beta)
		at = next
	}
	w.tile = tile.Args{} // so that the pool keeps no operand alive
	workspaces.Put(w)
}

func (j *job) blockAt(part, chunk, col int) block {
	i, rows := kernel.Split(part, j.parts, j.m)
	p, depth := kernel.Split(chunk, tile.Chunks(j.k), j.k)
	return block{part, i, rows, chunk, p, depth, col, min(blockCols, j.n-col)}
}

// after returns the next block: further columns, then further products, then further rows. At the
// end it returns an empty block.
func (j *job) after(b *block) block {
	switch {
	case b.col+b.cols < j.n:
		return j.blockAt(b.part, b.chunk, b.col+b.cols)
	case b.p+b.depth < j.k:
		return j.blockAt(b.part, b.chunk+1, 0)
	case b.part+1 < j.parts:
		return j.blockAt(b.part+1, 0, 0)
	}
	return block{}
}

// packsWholeB reports whether op(B) is small enough to be packed at once and stay in the
// second-level cache, while each strip of C takes all of its products in turn: C is then added to
// while it is in the first-level cache, and op(A) is read in memory order.
func (j *job) packsWholeB() bool {
	const most = 1 << 17
	return j.packB && !j.packA && j.a.ColStride == 1 && j.n <= blockCols && tile.Chunks(j.k) > 1 && j.n*j.k <= most &&
		j.m >= 2*len(j.Tiles)
}

// packWholeB packs op(B).
func (j *job) packWholeB() {
	j.workspace.wholeB = kernel.Grow(j.workspace.wholeB, tile.Chunks(j.k)*j.panelsSize())
	j.packed.b = j.workspace.wholeB
	for chunk := range tile.Chunks(j.k) {
		p, depth := kernel.Split(chunk, tile.Chunks(j.k), j.k)
		j.panelBuf = j.panels(chunk, 0, depth)
		j.packPanelsAt(p, 0, j.n, depth)
	}
}

// panelsSize returns the size of a chunk of packed op(B).
func (j *job) panelsSize() int {
	_, depth := kernel.Split(0, tile.Chunks(j.k), j.k)
	wide := 2 * j.Lanes
	return panelOffset((j.n+wide-1)/wide*wide, depth)
}

// panels returns the panels of packed op(B) from a column on.
func (j *job) panels(chunk, col, depth int) []float32 {
	return j.packed.b[chunk*j.panelsSize()+panelOffset(col, depth):]
}

// pageFloats is the number of float32 in a page of memory. Rows so far apart compete for the same
// sets of a cache.
const pageFloats = 1024

// crowdedFloats is a distance of which rows a multiple apart have so few sets of the first-level
// cache that the rows of a chunk evict each other before the next strip or panel reads them again.
const crowdedFloats = 64

// repeatedCols is the number of columns of C from which op(A) is packed: many blocks of columns read
// it again, and then from contiguous memory.
const repeatedCols = 16 * blockCols

// shouldPackA reports whether to pack op(A). The micro-kernels read it in place at nearly the same
// speed, unless its rows compete for the same cache sets. If it is transposed, each product reads
// from another row.
func shouldPackA(s *tile.Set, a tile.View, n int) bool {
	if s.RowsOnly {
		return false
	}
	crowded := a.ColStride%crowdedFloats == 0 && a.RowStride == 1
	return n >= 4*32 && (n >= repeatedCols || crowded || max(a.RowStride, a.ColStride)%pageFloats == 0)
}

// shouldPackB reports whether to pack op(B). The micro-kernels need contiguous columns; and if many
// rows of C share the cost, contiguous panels are faster.
func shouldPackB(b tile.View, m int) bool {
	crowded := tuned.crowdedRows
	if b.RowStride%pageFloats == 0 {
		crowded = min(crowded, 64)
	}
	return b.ColStride != 1 || m >= 512 || b.RowStride%crowdedFloats == 0 && m >= crowded
}

// block computes b, and prefetches the operands of the next block.
func (j *job) block(b, next *block, beta float32) {
	strips := j.strips(b.rows)
	if j.packA && b.col == 0 && j.packed.a == nil {
		j.workspace.a = kernel.Grow(j.workspace.a, strips*stripSize(j.Set, b.depth))
		j.packStrips(j.workspace.a, j.a.From(b.i, b.p), 0, strips, strips, b.rows, b.depth)
	}
	switch {
	case j.packed.b != nil:
		j.panelBuf = j.panels(b.chunk, b.col, b.depth)
	case b.part == 0 || j.n > blockCols || j.k > tile.Depth: // else all of B is in the workspace
		j.firstPacked = j.packPanelsAt(b.p, b.col, b.cols, b.depth)
	}
	j.planPrefetch(b, next, strips)
	if b.p > 0 {
		beta = 1
	}
	a, apart := j.a.From(b.i, b.p), 0
	if j.packA {
		a, apart = j.packedStrips(b), stripSize(j.Set, b.depth)
	}
	t := &j.tile
	t.ARow, t.ACol, t.K, t.Beta = 4*a.RowStride, 4*a.ColStride, b.depth, beta
	last := b.p+b.depth == j.k && j.epilogue.op != noEpilogue
	low, high := b.rows/strips, b.rows%strips
	for s, i, at := 0, 0, 0; s < strips; s++ {
		height := low
		if s < high {
			height++
		}
		t.A = &a.Data[at]
		if height > 1 {
			t.A2 = &a.Data[at+(height+1)/2*a.RowStride]
		}
		if at += apart; apart == 0 {
			at += height * a.RowStride
		}
		switch {
		case j.stripwise:
			j.prefetchStripPart(b)
		case s+1 < strips:
			j.prefetchStrip(&a, at, height, b.depth)
			j.prefetchRows(&a, at, height, b)
		default:
			j.nextRows = cacheLines{}
			j.prefetchFirstStrip(next, height)
		}
		c := j.c.Data[(b.i+i)*j.c.RowStride+b.col:]
		j.strip(height, b.cols, b, c)
		if last {
			j.epilogue.apply(b.i+i, b.col, height, b.cols, tile.RowMajor(c, j.c.RowStride))
		}
		i += height
	}
}

// planPrefetch sets the operands of the next block that this one prefetches.
func (j *job) planPrefetch(b, next *block, strips int) {
	j.nextBlock, j.nextBytes = cacheLines{}, bytePrefetch{}
	if j.packed.b == nil && next.rows > 0 && (next.p != b.p || next.col != b.col) {
		if j.bytesB.Bytes != nil {
			j.nextBytes = newBytePrefetch(j.bytesB.From(next.p, next.col), next.depth, next.cols,
				strips*((b.cols+2*j.Lanes-1)/(2*j.Lanes)))
		} else {
			j.nextBlock = linesOf(j.b.From(next.p, next.col), next.depth, next.cols)
		}
	}
}

// strips returns the number of strips of the rows: as few as possible, whose heights differ by one
// at most, the higher ones first.
func (j *job) strips(rows int) int { return (rows + len(j.Tiles) - 1) / len(j.Tiles) }

// stripsSize returns the size of a chunk of packed op(A).
func (j *job) stripsSize() int {
	_, depth := kernel.Split(0, tile.Chunks(j.k), j.k)
	return j.strips(j.m) * stripSize(j.Set, depth)
}

// packedStrips returns the packed strips of op(A) of a block.
func (j *job) packedStrips(b *block) tile.View {
	a := j.workspace.a
	if j.packed.a != nil {
		a = j.packed.a[b.chunk*j.stripsSize():]
	}
	return tile.ColMajor(a, stripRows(j.Set))
}

// packStrips packs the strips from, ..., to-1 of op(A): strip s at
// s·stripSize(depth) of dst, its columns stripRows apart.
func (j *job) packStrips(dst []float32, a tile.View, from, to, strips, rows, depth int) {
	size, between := stripSize(j.Set, depth), stripRows(j.Set)
	if a.RowStride == 1 {
		high := min(max(rows%strips, from), to) // strips before it have a row more than the others
		for _, group := range [][2]int{{from, high}, {high, to}} {
			first, height := kernel.Split(group[0], strips, rows)
			tile.PackCopy(dst[group[0]*size:], size, between, a.From(first, 0), height, group[1]-group[0], depth)
		}
		return
	}
	for s := from; s < to; s++ {
		first, height := kernel.Split(s, strips, rows)
		tile.PackTransposed(dst[s*size:], between, a.From(first, 0), height, depth)
	}
}

// packPanelsAt packs depth rows and some columns of op(B), from element p,col on. See packPanels.
func (j *job) packPanelsAt(p, col, cols, depth int) (first int) {
	if j.bytesB.Bytes != nil {
		return j.packBytePanels(j.bytesB.From(p, col), cols, depth)
	}
	return j.packPanels(j.b.From(p, col), cols, depth)
}

// packPanels packs the columns of op(B) that need it and returns the first of them. The panel that
// begins at column c is at panelOffset(c, depth).
func (j *job) packPanels(b tile.View, cols, depth int) (first int) {
	wide := 2 * j.Lanes
	if !j.packB {
		if j.Masked {
			return cols
		}
		first = cols / wide * wide
	}
	across := b.T()
	dst := j.panelBuf
	if across.RowStride == 1 {
		full := cols/wide - first/wide
		tile.PackCopy(dst[panelOffset(first, depth):], panelOffset(wide, depth), wide, across.From(first, 0), wide,
			full, depth)
		first += full * wide
		if first < cols {
			tile.PackCopy(dst[panelOffset(first, depth):],
				panelOffset(wide, depth), wide, across.From(first, 0), cols-first, 1, depth)
		}
		return first - full*wide
	}
	for at := first; at < cols; at += wide {
		tile.PackTransposed(dst[panelOffset(at, depth):], wide, across.From(at, 0), min(wide, cols-at), depth)
	}
	return first
}

// strip computes some columns of a strip of C, tile by tile.
func (j *job) strip(height, cols int, b *block, c []float32) {
	wide, t := 2*j.Lanes, &j.tile
	tiles := &j.Tiles[height-1]
	half := (height + 1) / 2 * j.c.RowStride
	for at := 0; at < cols; at += wide {
		if t.B, t.BRow = &j.panelBuf[panelOffset(at, b.depth)], 4*wide; at < j.firstPacked {
			t.B, t.BRow = &j.b.Data[b.p*j.b.RowStride+b.col+at], 4*j.b.RowStride
		}
		t.C = &c[at]
		if height > 1 {
			t.C2 = &c[half+at]
		}
		if at+wide >= cols {
			setPrefetch(t, j.nextStrip, j.nextStripStep)
		} else {
			j.prefetchInTile(t)
		}
		vectors := 1
		if t.Last = min(wide, cols-at); t.Last > j.Lanes {
			vectors, t.Last = 2, t.Last-j.Lanes
		}
		j.prefetchBytes()
		tiles[vectors-1](t)
	}
}
