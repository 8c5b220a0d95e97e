package conv

import (
	"fspda/cpu/tile"
)

// Rows of a matrix that lie a multiple of pageFloats numbers apart have one set of the first-level
// cache, and each begins another page: they evict each other before the next strip or panel reads
// them again. The weight gradient packs such operands where enough strips or panels read them.
const (
	pageFloats     = 1024
	minPackColumns = 128 // columns of dW for one row of the filter, for which rows of dy are packed
	minPackRows    = 64  // rows of dW for which columns of the block are packed
)

// packsGradient reports whether the rows of dy are packed, and whether the columns of the block are.
func (v *convolution) packsGradient() (rows, columns bool) {
	_, b, _ := v.gradLayout()
	rows = v.k%pageFloats == 0 && v.s*v.c >= minPackColumns
	return rows, b.colStep*b.colSize%pageFloats == 0 && v.k >= minPackRows
}

// packedSizes returns the numbers of scratch memory for packed rows and for packed columns of some
// products. A strip has six rows at least, which lie in eight.
func (v *convolution) packedSizes(depth int) (rows, columns int) {
	const least, most = 6, 8
	if v.readsRows() { // dy has been transposed, and the pairs of all rows of pixels follow each other
		return 0, maxPanel * depth
	}
	packsRows, packsColumns := v.packsGradient()
	if packsRows {
		rows = (min(v.k, gradRows) + least - 1) / least * most * (depth + 1)
	}
	if packsColumns {
		columns = maxPanel * depth
	}
	return rows, columns
}

// takePacked takes the memory of packed operands from the scratch memory.
func (d *weightGrad) takePacked(depth int) {
	rows, columns := d.v.packedSizes(depth)
	d.strips, d.panel, d.packed = d.packed[:rows], d.packed[rows:][:columns], d.packed[rows+columns:]
}

// gradientRows is where the strips of rows of dy begin.
type gradientRows struct {
	data  []float32
	size  int // The distance of strips; 0: they are rows of one matrix.
	apart int // The distance of rows.
}

// gradientRows returns some rows of dy, as far as they are packed, and sets the strides of the
// micro-kernels. The columns of dy are contiguous, unless it was transposed.
func (d *weightGrad) gradientRows(dy []float32, rows, depth int) gradientRows {
	if len(d.strips) == 0 {
		return gradientRows{dy, 0, max(1, d.pairsApart)}
	}
	high := len(d.Tiles)
	between, strips := roundUp(high, 8), (rows+high-1)/high
	size := between * (depth + 1) // one column more, or all strips would begin in the same set of the cache
	low, higher := rows/strips, rows%strips
	from := tile.ColMajor(dy, d.v.k)
	tile.PackCopy(d.strips, size, between, from, low+1, higher, depth)
	tile.PackCopy(d.strips[higher*size:], size, between, from.From(higher*(low+1), 0), low, strips-higher, depth)
	d.tile.ACol = 4 * between
	return gradientRows{d.strips, size, 1}
}

// blockPixels is the layout of the pixels of a part: next is the distance in bytes of a pixel
// and the next of its row, and behind the rows and the images are jump and gap bytes.
type blockPixels struct{ cols, rows, images, next, jump, gap int }

func (x blockPixels) count() int { return x.cols * x.rows * x.images }

// pack writes a panel: some numbers of every pixel, of which from has the first.
func (x blockPixels) pack(panel []float32, wide int, from []float32, columns int) {
	for i := range x.rows * x.images {
		at := (i*(x.cols*x.next+x.jump) + i/x.rows*x.gap) / 4
		tile.PackCopy(panel[i*x.cols*wide:], 0, wide, tile.ColMajor(from[at:], x.next/4), columns, 1, x.cols)
	}
}
