package norm

import (
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// matrix is a matrix of float32 numbers, or of numbers of 16 bits, two to a word. Loops compute
// with float32 numbers: rows of 16 bits are widened before them, and rounded behind them.
type matrix struct {
	data []float32
	half bool
}

// numbersAtOnce is how much of each matrix is widened at a time: two of them stay in the
// first-level cache.
const numbersAtOnce = 4096

// rowBuffers hold some rows of four matrices, as float32 numbers.
type rowBuffers [4][]float32

var rowBufferPool = sync.Pool{New: func() any {
	b := new(rowBuffers)
	for i := range b {
		b[i] = kernel.Aligned(numbersAtOnce)
	}
	return b
}}

// window is some rows and columns of the matrices of a pass, which have c columns.
type window struct {
	*loops
	// The slices that read and output return have this span.
	span
	c, row, col int // where it begins in the matrices
	streamed    int // bytes from which outputs are written by non-temporal stores
	buffers     *rowBuffers
}

// newWindow returns a window on some columns. If all matrices have 32 bits, or all have 16 and there
// are loops for that, the loops use the matrices, else buffers, which release returns.
func newWindow(c, col, cols, streamed int, matrices ...matrix) window {
	v := window{loops: active(), span: span{stride: c, cols: cols}, c: c, col: col, streamed: streamed}
	some, all := false, true
	for _, m := range matrices {
		some = some || m.half
		all = all && (m.half || m.data == nil)
	}
	switch {
	case some && all && halfLoops() != nil:
		v.loops = halfLoops()
	case some:
		v.buffers, v.stride = rowBufferPool.Get().(*rowBuffers), cols
	}
	return v
}

func (v *window) release() {
	if v.buffers != nil {
		tile.Fence()
		rowBufferPool.Put(v.buffers)
	}
}

// step returns the number of rows for one call of a loop.
func (v *window) step() int {
	if v.buffers != nil {
		return max(1, numbersAtOnce/v.cols)
	}
	return rowsPerCall(v.cols)
}

// move sets the rows, and how far ahead the loops prefetch.
func (v *window) move(row, rows, prefetch int) {
	v.row, v.rows, v.prefetch = row, rows, prefetch
}

// stores returns the index of loops for an output, as nonTemporal does.
func (v *window) stores(y matrix) int {
	if v.buffers != nil {
		return 0
	}
	return nonTemporal(y.data, v.c, v.streamed)
}

// read returns the numbers of a matrix in the window, by way of buffer k if need be; of no matrix,
// nil.
func (v *window) read(k int, m matrix) []float32 {
	to := v.output(k, m)
	if m.data != nil && v.buffered(m) {
		v.each(func(at, place int) {
			if m.half {
				tile.Widen(to[place:][:v.cols], m.data[at/2:][:v.cols/2])
			} else {
				copy(to[place:][:v.cols], m.data[at:])
			}
		})
	}
	return to
}

// output returns where a loop writes the numbers of a matrix, which write then stores.
func (v *window) output(k int, m matrix) []float32 {
	switch {
	case m.data == nil:
		return nil
	case v.buffered(m):
		return v.buffers[k][:v.rows*v.cols]
	case m.half:
		return m.data[(v.row*v.c+v.col)/2:]
	}
	return m.data[v.row*v.c+v.col:]
}

// write stores the numbers of an output, unless the loop has written them in place.
func (v *window) write(m matrix, from []float32) {
	if m.data == nil || !v.buffered(m) {
		return
	}
	v.each(func(at, place int) {
		switch {
		case m.half && 4*len(m.data) >= v.streamed:
			tile.NarrowStream(m.data[at/2:], from[place:][:v.cols])
		case m.half:
			tile.Narrow(m.data[at/2:], from[place:][:v.cols])
		default:
			copy(m.data[at:], from[place:][:v.cols])
		}
	})
}

// buffered reports whether a matrix is read and written by way of a buffer.
func (v *window) buffered(m matrix) bool {
	return v.buffers != nil && (m.half || v.stride != v.c)
}

// each calls f for the rows of the window: where each begins in a matrix, and in a buffer. Whole rows
// are one.
func (v *window) each(f func(at, place int)) {
	if whole := *v; v.cols == v.c {
		v.cols *= v.rows
		f(v.row*v.c, 0)
		*v = whole
		return
	}
	for i := range v.rows {
		f((v.row+i)*v.c+v.col, i*v.cols)
	}
}

// firstRow writes numbers of the first row.
func (m matrix) firstRow(to []float32, col int) {
	if m.half {
		tile.Widen(to, m.data[col/2:][:len(to)/2])
	} else {
		copy(to, m.data[col:])
	}
}
