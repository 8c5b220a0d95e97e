//go:build !noasm

package cpu

import (
	"sync"
	"unsafe"
)

// Blocks of op(A) and op(B) that are worked on at a time: a strip of A stays in the first cache,
// the columns of B in the second. The rows of a block lie in the third if they are packed; more of
// them share the packing of B.
const (
	blockRows = 1120 // a multiple of the height of the highest tile
	blockCols = 256
	stripRows = 16 // distance of columns of a packed strip of A
)

// Packed strips and panels are a column of theirs longer than they need be. Else they would begin
// at a multiple of 4 KB from each other for the usual depth, and what is written to all of them
// side by side would meet in the same lines of the first cache.
func stripSize(depth int) int { return stripRows * (depth + 1) }

// panelAt is where the packed panel that begins at a column of op(B) lies.
func panelAt(col, depth int) int { return col * (depth + 1) }

// workspace is the room for packed operands. One call has one; the pool keeps them, so that calls
// allocate nothing.
type workspace struct {
	a, b []float32 // a grows when it is needed
	all  []float32 // of op(B) where it is packed at once: grows, too
	tile tileArgs
}

var workspaces = sync.Pool{New: func() any { return &workspace{b: aligned(panelAt(blockCols, gemmDepth))} }}

// job is one call.
type job struct {
	*tileSet
	*workspace
	m, n, k      int
	parts        int // of the rows
	a, b, c      view
	coded        coded // instead of b, or no bytes
	packA, packB bool
	packed       int       // the first column of the block at work that lies in the workspace
	room         []float32 // the workspace of that block's op(B)
	// in the workspace, from one chunk of op(B) to the next, where all of it is packed at once;
	// else 0
	apart int
	then  epilogue
	nextA unsafe.Pointer // what the next strip of A needs: a line every stepA bytes from here on
	stepA int
	early lines // what the next strip needs of op(A), from memory
	soon  lines // what the next block needs of op(B)
	asked asking
}

// block is a piece of a job: the products p to p+depth of rows×cols elements of C, from row i and
// column col on.
type block struct{ part, i, rows, chunk, p, depth, col, cols int }

// product is gemmThen without its checks.
func productOn(s *tileSet, m, n, k int, alpha float32, a, b view, beta float32, c view, then epilogue) {
	if worthTurning(s, m, n, k, a, b, beta) {
		productTurned(s, m, n, k, alpha, a, coded{}, b, c, then)
		return
	}
	multiply(s, m, n, k, alpha, a, b, coded{}, beta, c, then)
}

// multiply is product as it stands. op(B) is b, or e where that has bytes.
func multiply(s *tileSet, m, n, k int, alpha float32, a, b view, e coded, beta float32, c view, then epilogue) {
	w := workspaces.Get().(*workspace)
	w.tile = tileArgs{ldc: 4 * c.rs, runs: 1, alpha: alpha}
	parts := (m + blockRows - 1) / blockRows
	j := job{tileSet: s, workspace: w, m: m, n: n, k: k, parts: parts, a: a, b: b, c: c, coded: e,
		packA: worthPackingA(a, n), packB: e.bytes != nil || worthPackingB(b, m), room: w.b, then: then}
	if j.keepsAll() {
		j.packAll()
	}
	at := j.blockAt(0, 0, 0)
	j.askFirst(&at)
	for at.rows > 0 {
		next := j.after(&at)
		j.block(&at, &next, beta)
		at = next
	}
	w.tile = tileArgs{} // so that the pool keeps no operand alive
	workspaces.Put(w)
}

func (j *job) blockAt(part, chunk, col int) block {
	i, rows := share(part, j.parts, j.m)
	p, depth := share(chunk, gemmChunks(j.k), j.k)
	return block{part, i, rows, chunk, p, depth, col, min(blockCols, j.n-col)}
}

// after returns the block that follows: further columns, then further products, then further rows,
// and none of any at the end.
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

// keepsAll says whether op(B) is small enough to be packed at once and stay in the second cache,
// while strip after strip of C takes all of its products: C then is added to while it lies in the
// first cache, and op(A) is read as it lies in memory.
func (j *job) keepsAll() bool {
	const most = 1 << 17
	return j.packB && !j.packA && j.a.cs == 1 && j.n <= blockCols && gemmChunks(j.k) > 1 && j.n*j.k <= most &&
		j.m >= 2*len(j.tiles)
}

// packAll packs op(B), and makes every strip a part of its own.
func (j *job) packAll() {
	chunks := gemmChunks(j.k)
	_, depth := share(0, chunks, j.k)
	wide := 2 * j.lanes
	j.apart = panelAt((j.n+wide-1)/wide*wide, depth)
	j.workspace.all = atLeast(j.workspace.all, chunks*j.apart)
	for chunk := range chunks {
		p, depth := share(chunk, chunks, j.k)
		j.room = j.workspace.all[chunk*j.apart:]
		j.packed = j.panelsAt(p, 0, j.n, depth)
	}
	j.parts = j.strips(j.m)
}

// A page of memory holds that many numbers. Rows so far apart compete for the same lines of a
// cache.
const page = 1024

// worthPackingA says whether op(A) is to be packed. The micro-kernels read it in place at nearly
// the same speed, unless its rows meet in the cache.
func worthPackingA(a view, n int) bool { return max(a.rs, a.cs)%page == 0 && n >= 4*32 }

// worthPackingB says whether op(B) is to be packed. They need the columns side by side, and where
// there are many rows of C to share the cost, rows that lie together.
func worthPackingB(b view, m int) bool { return b.cs != 1 || m >= 512 || b.rs%page == 0 && m >= 64 }

// block does the work of b, and has the caches fetch what the next block needs.
func (j *job) block(b, next *block, beta float32) {
	strips := j.strips(b.rows)
	if j.packA && b.col == 0 {
		j.packStrips(j.a.from(b.i, b.p), strips, b.rows, b.depth)
	}
	switch {
	case j.apart > 0:
		j.room = j.workspace.all[b.chunk*j.apart:]
	case b.part == 0 || j.n > blockCols || j.k > gemmDepth: // else all of B is in the workspace
		j.packed = j.panelsAt(b.p, b.col, b.cols, b.depth)
	}
	j.soon, j.asked = lines{}, asking{}
	if j.apart == 0 && next.rows > 0 && (next.p != b.p || next.col != b.col) {
		if j.coded.bytes != nil {
			j.asked = askingFor(j.coded.from(next.p, next.col), next.depth, next.cols,
				strips*((b.cols+2*j.lanes-1)/(2*j.lanes)))
		} else {
			j.soon = linesOf(j.b.from(next.p, next.col), next.depth, next.cols)
		}
	}
	if b.p > 0 {
		beta = 1
	}
	a, apart := j.a.from(b.i, b.p), 0
	if j.packA {
		a, apart = view{j.workspace.a, 1, stripRows}, stripSize(b.depth)
	}
	t := &j.tile
	t.ars, t.acs, t.k, t.beta = 4*a.rs, 4*a.cs, b.depth, beta
	last := b.p+b.depth == j.k && j.then.then != nothing
	low, high := b.rows/strips, b.rows%strips
	for s, i, at := 0, 0, 0; s < strips; s++ {
		height := low
		if s < high {
			height++
		}
		t.a = &a.data[at]
		if height > 1 {
			t.a2 = &a.data[at+(height+1)/2*a.rs]
		}
		if at += apart; apart == 0 {
			at += height * a.rs
		}
		switch {
		case j.apart > 0:
			j.hintShare(b)
		case s+1 < strips:
			j.hint(&a, at, height, b.depth)
			j.hintRows(&a, at, height, b)
		default:
			j.early = lines{}
			j.hintFirst(next, height)
		}
		c := j.c.data[(b.i+i)*j.c.rs+b.col:]
		j.strip(height, b, c)
		if last {
			j.then.apply(b.i+i, b.col, height, b.cols, view{c, j.c.rs, 1})
		}
		i += height
	}
}

// strips is how many strips so many rows make: as few as possible, of nearly the same height, the
// higher ones first.
func (j *job) strips(rows int) int { return (rows + len(j.tiles) - 1) / len(j.tiles) }

// packStrips packs op(A): strip s at s·stripRows·depth, its columns stripRows apart.
func (j *job) packStrips(a view, strips, rows, depth int) {
	size := stripSize(depth)
	j.workspace.a = atLeast(j.workspace.a, strips*size)
	dst := j.workspace.a
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

// panelsAt packs depth rows and some columns of op(B), from element p,col on. See panels.
func (j *job) panelsAt(p, col, cols, depth int) (first int) {
	if j.coded.bytes != nil {
		return j.codedPanels(j.coded.from(p, col), cols, depth)
	}
	return j.panels(j.b.from(p, col), cols, depth)
}

// panels packs columns of op(B), as many as are to be packed, and returns the first: the panel that
// begins at column c is at c·depth.
func (j *job) panels(b view, cols, depth int) (first int) {
	wide := 2 * j.lanes
	if !j.packB {
		if j.masked {
			return cols
		}
		first = cols / wide * wide
	}
	across := view{b.data, b.cs, b.rs}
	dst := j.room
	if across.rs == 1 {
		full := cols/wide - first/wide
		packAlong(dst[panelAt(first, depth):], panelAt(wide, depth), wide, across.from(first, 0), wide, full, depth)
		first += full * wide
		if first < cols {
			packAlong(dst[panelAt(first, depth):], panelAt(wide, depth), wide, across.from(first, 0), cols-first, 1,
				depth)
		}
		return first - full*wide
	}
	for at := first; at < cols; at += wide {
		packAcross(dst[panelAt(at, depth):], wide, across.from(at, 0), min(wide, cols-at), depth)
	}
	return first
}

// strip computes a strip of C, tile after tile.
func (j *job) strip(height int, b *block, c []float32) {
	wide, t := 2*j.lanes, &j.tile
	tiles := &j.tiles[height-1]
	half := (height + 1) / 2 * j.c.rs
	for at := 0; at < b.cols; at += wide {
		if t.b, t.brs = &j.room[panelAt(at, b.depth)], 4*wide; at < j.packed {
			t.b, t.brs = &j.b.data[b.p*j.b.rs+b.col+at], 4*j.b.rs
		}
		t.c = &c[at]
		if height > 1 {
			t.c2 = &c[half+at]
		}
		if at+wide >= b.cols {
			expect(t, j.nextA, j.stepA)
		} else {
			j.expectMore(t)
		}
		vectors := 1
		if t.last = min(wide, b.cols-at); t.last > j.lanes {
			vectors, t.last = 2, t.last-j.lanes
		}
		j.ask()
		tiles[vectors-1](t)
	}
}
