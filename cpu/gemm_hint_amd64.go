//go:build !noasm

package cpu

import "unsafe"

// Every product of a micro-kernel asks the caches for one line that will be needed later. A strip
// of C has more tiles than its successor's strip of A has lines: the last tile asks for that strip,
// and the others for the next block of B, line by line.

// lines is a part of a matrix, to be asked for: so many lines, of each of its rows or of each piece
// of memory.
type lines struct {
	at   unsafe.Pointer
	left int
	step int // bytes from row to row, or from line to line of a piece
	next int // bytes to what is to be asked for next
}

// linesOf is the lines of rows×cols elements of v, none where its rows are a multiple of a page
// apart: they would drive each other out.
func linesOf(v view, rows, cols int) lines {
	if v.cs != 1 {
		v, cols = view{v.data, v.cs, v.rs}, rows
	}
	if v.rs%page == 0 {
		return lines{}
	}
	return lines{unsafe.Pointer(&v.data[0]), (cols + perLine - 1) / perLine, 4 * v.rs, line}
}

// take takes the next line of all rows, or the next piece: where it begins, nil where none is left.
func (l *lines) take() (at unsafe.Pointer) {
	if l.left == 0 {
		return nil
	}
	at = l.at
	if l.left--; l.left > 0 {
		l.at = unsafe.Add(at, l.next)
	}
	return at
}

// expectMore makes a tile that is not the last of its strip ask for a piece of the next strip's
// rows, or else for a line of the next block.
func (j *job) expectMore(t *tileArgs) {
	if at := j.early.take(); at != nil {
		expect(t, at, j.early.step)
		return
	}
	expect(t, j.soon.take(), j.soon.step)
}

// askFirst asks the second cache for the first strip of op(A), as far as b reads it, while op(B) is
// packed.
func (j *job) askFirst(b *block) {
	if j.packA || j.a.cs != 1 {
		return
	}
	_, height := share(0, j.strips(b.rows), b.rows)
	var at [stripRows]int
	for i := range height {
		at[i] = 4 * i * j.a.rs
	}
	askRowsAVX2((*uint8)(unsafe.Pointer(&j.a.data[0])), &at[0], height, 4*b.depth)
}

// hintRows has the second cache fetch rows of op(A), all of their products, while the first chunk
// of those of the strip before is at work: what the last tile of a strip can ask for is too little
// where a chunk is a part of long rows.
func (j *job) hintRows(a *view, at, rows int, b *block) {
	const most = 1 << 17 // numbers of op(A): half of the second cache
	j.early = lines{}
	if j.packA || a.cs != 1 || b.p > 0 || b.depth == j.k || j.m*a.rs > most || at >= len(a.data) {
		return
	}
	piece := b.depth * line
	left := 4 * min(rows*a.rs, len(a.data)-at)
	j.early = lines{unsafe.Pointer(&a.data[at]), (left + piece - 1) / piece, line, piece}
}

// expect makes a tile ask for a line every step bytes from at on, or for nothing new.
func expect(t *tileArgs, at unsafe.Pointer, step int) {
	t.ahead, t.step = 0, 0
	if at != nil {
		t.ahead, t.step = int(uintptr(at)-uintptr(unsafe.Pointer(t.a))), step
	}
}

// hint makes a strip of op(A), so many rows from number at of a on, what the last tile of a strip
// asks for in its depth products.
func (j *job) hint(a *view, at, rows, depth int) {
	if a.rs == 1 { // its piece of every column, up to the end, which may lie in a further line
		j.nextA, j.stepA = unsafe.Pointer(&a.data[min(at+rows, len(a.data))-1]), 4*a.cs
		return
	}
	j.nextA, j.stepA = unsafe.Pointer(&a.data[at]), 4*(rows*a.rs/depth) // its rows as they follow one another
}

// hintFirst is hint for the first strip of a block to come, if there is one and it lies where it
// will be read.
func (j *job) hintFirst(b *block, rows int) {
	j.nextA, j.stepA = nil, 0
	switch {
	case b.rows == 0 || j.packA && b.col == 0:
	case j.packA:
		j.hint(&view{j.workspace.a, 1, stripRows}, 0, rows, b.depth)
	default:
		a := j.a.from(b.i, b.p)
		j.hint(&a, 0, min(rows, b.rows), b.depth)
	}
}

// hintShare is hint where every strip takes all of its products in turn: in each chunk the last
// tile asks for its share of the next strip.
func (j *job) hintShare(b *block) {
	j.nextA, j.stepA = nil, 0
	if b.part+1 == j.parts {
		return
	}
	i, rows := share(b.part+1, j.parts, j.m)
	at, size := share(b.chunk, gemmChunks(j.k), (rows-1)*j.a.rs+j.k)
	j.nextA, j.stepA = unsafe.Pointer(&j.a.data[i*j.a.rs+at]), 4*(size/b.depth)
}
