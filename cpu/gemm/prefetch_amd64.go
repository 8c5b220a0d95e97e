//go:build !noasm

package gemm

import (
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// Every product of a micro-kernel asks the caches for one line that will be needed later. A strip
// of C has more tiles than its successor's strip of A has lines: the last tile asks for that strip,
// and the others for the next block of B, line by line.

// lines is a part of a matrix, to be asked for: so many lines, of each of its rows or of each piece
// of memory.
type cacheLines struct {
	addr   unsafe.Pointer
	count  int
	step   int // bytes from row to row, or from line to line of a piece
	stride int // bytes to what is to be asked for next
}

// linesOf is the lines of rows×cols elements of v, none where its rows are a multiple of a page
// apart: they would drive each other out.
func linesOf(v tile.View, rows, cols int) cacheLines {
	if v.ColStride != 1 {
		v, cols = v.T(), rows
	}
	if v.RowStride%pageFloats == 0 {
		return cacheLines{}
	}
	return cacheLines{unsafe.Pointer(&v.Data[0]), (cols + kernel.LineFloats - 1) / kernel.LineFloats, 4 * v.RowStride, kernel.CacheLine}
}

// take takes the next line of all rows, or the next piece: where it begins, nil where none is left.
func (l *cacheLines) next() (at unsafe.Pointer) {
	if l.count == 0 {
		return nil
	}
	at = l.addr
	if l.count--; l.count > 0 {
		l.addr = unsafe.Add(at, l.stride)
	}
	return at
}

// expectMore makes a tile that is not the last of its strip ask for a piece of the next strip's
// rows, or else for a line of the next block.
func (j *job) prefetchInTile(t *tile.Args) {
	if at := j.nextRows.next(); at != nil {
		setPrefetch(t, at, j.nextRows.step)
		return
	}
	setPrefetch(t, j.nextBlock.next(), j.nextBlock.step)
}

// askFirst asks the second cache for the first strip of op(A), as far as b reads it, while op(B) is
// packed.
func (j *job) prefetchFirstRows(b *block) {
	if j.packA || j.a.ColStride != 1 {
		return
	}
	_, height := kernel.Split(0, j.strips(b.rows), b.rows)
	var at [stripRows]int
	for i := range height {
		at[i] = 4 * i * j.a.RowStride
	}
	vec.PrefetchRows((*uint8)(unsafe.Pointer(&j.a.Data[0])), &at[0], height, 4*b.depth)
}

// hintRows has the second cache fetch rows of op(A), all of their products, while the first chunk
// of those of the strip before is at work: what the last tile of a strip can ask for is too little
// where a chunk is a part of long rows.
func (j *job) prefetchRows(a *tile.View, at, rows int, b *block) {
	const most = 1 << 17 // numbers of op(A): half of the second cache
	j.nextRows = cacheLines{}
	if j.packA || a.ColStride != 1 || b.p > 0 || b.depth == j.k || j.m*a.RowStride > most || at >= len(a.Data) {
		return
	}
	piece := b.depth * kernel.CacheLine
	left := 4 * min(rows*a.RowStride, len(a.Data)-at)
	j.nextRows = cacheLines{unsafe.Pointer(&a.Data[at]), (left + piece - 1) / piece, kernel.CacheLine, piece}
}

// expect makes a tile ask for a line every step bytes from at on, or for nothing new.
func setPrefetch(t *tile.Args, at unsafe.Pointer, step int) {
	t.Ahead, t.Step = 0, 0
	if at != nil {
		t.Ahead, t.Step = int(uintptr(at)-uintptr(unsafe.Pointer(t.A))), step
	}
}

// hint makes a strip of op(A), so many rows from number at of a on, what the last tile of a strip
// asks for in its depth products.
func (j *job) prefetchStrip(a *tile.View, at, rows, depth int) {
	if a.RowStride == 1 { // its piece of every column, up to the end, which may lie in a further line
		j.nextStrip, j.nextStripStep = unsafe.Pointer(&a.Data[min(at+rows, len(a.Data))-1]), 4*a.ColStride
		return
	}
	j.nextStrip, j.nextStripStep = unsafe.Pointer(&a.Data[at]), 4*(rows*a.RowStride/depth) // its rows as they follow one another
}

// hintFirst is hint for the first strip of a block to come, if there is one and it lies where it
// will be read.
func (j *job) prefetchFirstStrip(b *block, rows int) {
	j.nextStrip, j.nextStripStep = nil, 0
	switch {
	case b.rows == 0 || j.packA && b.col == 0:
	case j.packA:
		a := tile.ColMajor(j.workspace.a, stripRows)
		j.prefetchStrip(&a, 0, rows, b.depth)
	default:
		a := j.a.From(b.i, b.p)
		j.prefetchStrip(&a, 0, min(rows, b.rows), b.depth)
	}
}

// hintShare is hint where every strip takes all of its products in turn: in each chunk the last
// tile asks for its share of the next strip.
func (j *job) prefetchStripPart(b *block) {
	j.nextStrip, j.nextStripStep = nil, 0
	if b.part+1 == j.parts {
		return
	}
	i, rows := kernel.Split(b.part+1, j.parts, j.m)
	at, size := kernel.Split(b.chunk, tile.Chunks(j.k), (rows-1)*j.a.RowStride+j.k)
	j.nextStrip, j.nextStripStep = unsafe.Pointer(&j.a.Data[i*j.a.RowStride+at]), 4*(size/b.depth)
}
