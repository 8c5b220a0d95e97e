package gemm

import (
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// Every product of a micro-kernel prefetches one cache line. The last tile of a strip prefetches
// the next strip of A, and the other tiles the next block of B: a strip of C has more tiles than
// the next strip of A has lines.

// cacheLines is a part of a matrix to prefetch: a number of lines of each of its rows, or of pieces
// of memory.
type cacheLines struct {
	addr   unsafe.Pointer
	count  int
	step   int // bytes from row to row, or from line to line of a piece
	stride int // bytes from one prefetch to the next
}

// linesOf returns the lines of rows×cols elements of v, or none if its rows lie a multiple of a
// page apart: they would evict each other.
func linesOf(v tile.View, rows, cols int) cacheLines {
	if v.ColStride != 1 {
		v, cols = v.T(), rows
	}
	if v.RowStride%pageFloats == 0 {
		return cacheLines{}
	}
	return cacheLines{unsafe.Pointer(&v.Data[0]), (cols + kernel.LineFloats - 1) / kernel.LineFloats, 4 * v.RowStride,
		kernel.CacheLine}
}

// next returns the address of the next line or piece, nil if none is left.
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

// prefetchInTile makes a tile that is not the last of its strip prefetch a piece of the next
// strip's rows, or else a line of the next block.
func (j *job) prefetchInTile(t *tile.Args) {
	if at := j.nextRows.next(); at != nil {
		setPrefetch(t, at, j.nextRows.step)
		return
	}
	setPrefetch(t, j.nextBlock.next(), j.nextBlock.step)
}

// prefetchFirstRows prefetches the first strip of op(A), as far as b reads it, into the
// second-level cache, while op(B) is packed.
func (j *job) prefetchFirstRows(b *block) {
	if j.packA || j.a.ColStride != 1 {
		return
	}
	_, height := kernel.Split(0, j.strips(b.rows), b.rows)
	var at [maxStripRows]int
	for i := range height {
		at[i] = 4 * i * j.a.RowStride
	}
	vec.PrefetchRows((*uint8)(unsafe.Pointer(&j.a.Data[0])), &at[0], height, 4*b.depth)
}

// prefetchRows prefetches all products of some rows of op(A) into the second-level cache, while the
// first chunk of the strip before is computed: if chunks are parts of long rows, the last tile of a
// strip can prefetch too little.
func (j *job) prefetchRows(a *tile.View, at, rows int, b *block) {
	const most = 1 << 17 // numbers of op(A): half of the second-level cache
	j.nextRows = cacheLines{}
	if j.packA || a.ColStride != 1 || b.p > 0 || b.depth == j.k || j.m*a.RowStride > most || at >= len(a.Data) {
		return
	}
	piece := b.depth * kernel.CacheLine
	left := 4 * min(rows*a.RowStride, len(a.Data)-at)
	j.nextRows = cacheLines{unsafe.Pointer(&a.Data[at]), (left + piece - 1) / piece, kernel.CacheLine, piece}
}

// setPrefetch makes a tile prefetch a line every step bytes from at on, or nothing if at is nil.
func setPrefetch(t *tile.Args, at unsafe.Pointer, step int) {
	t.Ahead, t.Step = 0, 0
	if at != nil {
		t.Ahead, t.Step = int(uintptr(at)-uintptr(unsafe.Pointer(t.A))), step
	}
}

// prefetchStrip makes the last tile of a strip prefetch a strip of op(A), some rows from number at
// of a on, during depth products.
func (j *job) prefetchStrip(a *tile.View, at, rows, depth int) {
	if a.RowStride == 1 { // the strip's part of every column, up to its end, which may lie in another line
		j.nextStrip, j.nextStripStep = unsafe.Pointer(&a.Data[min(at+rows, len(a.Data))-1]), 4*a.ColStride
		return
	}
	j.nextStrip, j.nextStripStep = unsafe.Pointer(&a.Data[at]), 4*(rows*a.RowStride/depth) // contiguous rows
}

// prefetchFirstStrip is prefetchStrip for the first strip of the next block, if there is one and it
// lies where it will be read.
func (j *job) prefetchFirstStrip(b *block, rows int) {
	j.nextStrip, j.nextStripStep = nil, 0
	switch {
	case b.rows == 0 || j.packA && b.col == 0 && j.packed.a == nil:
	case j.packA:
		a := j.packedStrips(b)
		j.prefetchStrip(&a, 0, rows, b.depth)
	default:
		a := j.a.From(b.i, b.p)
		j.prefetchStrip(&a, 0, min(rows, b.rows), b.depth)
	}
}

// prefetchStripPart is used if every strip takes all of its products in turn: in each chunk the
// last tile prefetches a share of the next strip.
func (j *job) prefetchStripPart(b *block) {
	j.nextStrip, j.nextStripStep = nil, 0
	if b.part+1 == j.parts {
		return
	}
	i, rows := kernel.Split(b.part+1, j.parts, j.m)
	at, size := kernel.Split(b.chunk, tile.Chunks(j.k), (rows-1)*j.a.RowStride+j.k)
	j.nextStrip, j.nextStripStep = unsafe.Pointer(&j.a.Data[i*j.a.RowStride+at]), 4*(size/b.depth)
}
