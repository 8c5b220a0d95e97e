//go:build !noasm

package cpu

import "unsafe"

// Every product of a micro-kernel asks the caches for one line that will be needed later. A strip of C has more tiles than its
// successor's strip of A has lines: the last tile asks for that strip, and the others for the next block of B, line by line.

// lines is a part of a matrix, to be asked for: so many lines side by side, in each of its rows.
type lines struct {
	data []float32
	left int
	step int // bytes from row to row
}

// perLine is how many numbers a line of the cache holds.
const perLine = line / 4

// linesOf is the lines of rows×cols elements of v, none where its rows are a multiple of a page apart: they would drive each other out.
func linesOf(v view, rows, cols int) lines {
	if v.cs != 1 {
		v, cols = view{v.data, v.cs, v.rs}, rows
	}
	if v.rs%page == 0 {
		return lines{}
	}
	return lines{v.data, (cols + perLine - 1) / perLine, 4 * v.rs}
}

// next takes the next line of all rows: where it begins, and the bytes from row to row; nil where none is left.
func (l *lines) next() (at *float32, step int) {
	if l.left == 0 {
		return nil, 0
	}
	at = &l.data[0]
	if l.left--; l.left > 0 {
		l.data = l.data[perLine:]
	}
	return at, l.step
}

// expect makes a tile ask for a line every step bytes from at on, or for nothing new.
func (t *tileArgs) expect(at *float32, step int) {
	t.ahead, t.step = 0, 0
	if at != nil {
		t.ahead, t.step = int(uintptr(unsafe.Pointer(at))-uintptr(unsafe.Pointer(t.a))), step
	}
}

// hint finds what strip s of b needs of op(A); behind the last one, what the first strip of the next block does.
func (j *job) hint(b, next block, more bool, s int) {
	j.nextA, j.stepA = nil, 0
	if s == j.strips(b.rows) {
		if !more || j.packA && next.col == 0 { // not packed yet
			return
		}
		b, s = next, 0
	}
	a := j.stripOfA(b, s)
	_, height := share(s, j.strips(b.rows), b.rows)
	switch {
	case a.rs == 1: // its piece of every column, up to the end, which may lie in a further line
		j.nextA, j.stepA = &a.data[height-1], 4*a.cs
	default: // its rows as they follow one another, in as many steps as there are products
		j.nextA, j.stepA = &a.data[0], 4*(height*a.rs/b.depth)
	}
}
