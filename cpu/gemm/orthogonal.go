package gemm

import (
	"math"
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
	"fspda/device"
)

// orthogonalBuffer holds the intermediate matrices and the current product of an orthogonalization.
type orthogonalBuffer struct {
	numbers []float32
	product directProduct
}

var orthogonalPool = sync.Pool{New: func() any { return new(orthogonalBuffer) }}

// Orthogonalize computes a matrix of [device.Orthogonalize] in place, in x, whose rows follow each
// other. The goroutines of o share the products. Every element is defined to the last bit: the sum
// of squares has the bits of [device.Dot], the reciprocal of the norm is rounded to float32, and
// products have the bits of [Multiply]. Intermediate matrices are as tall as wide, or taller: a
// wider one is transposed, which gives the same bits, since factors may be exchanged. Then all
// products read their factors in place. For the same reason one half of a symmetric product is the
// mirror image of the other.
func Orthogonalize(o *kernel.Args, x []float32, rows, cols int, scale float64) {
	if rows == 0 || cols == 0 {
		return
	}
	x = x[:rows*cols]
	long, side := max(rows, cols), min(rows, cols)
	b := orthogonalPool.Get().(*orthogonalBuffer)
	defer orthogonalPool.Put(b)
	ld := orthogonalRow(side)
	if size := 2 * (long + side) * ld; len(b.numbers) < size {
		b.numbers = kernel.Aligned(size)
	}
	rest := b.numbers
	cut := func(rows int) tile.View {
		v := rest[:rows*ld]
		rest = rest[rows*ld:]
		return tile.RowMajor(v, ld)
	}
	now, next, p, q := cut(long), cut(long), cut(side), cut(side)
	norm := math.Sqrt(vec.SumOfSquares(x))
	scaled(o, x, float32(1/max(norm, device.OrthogonalMinNorm)))
	whole := tile.RowMajor(x, cols)
	from := whole
	if rows <= cols {
		from = whole.T()
	}
	copied(o, now, from, long, side)
	d := &b.product
	for range device.OrthogonalSteps {
		*d = directProduct{m: side, n: side, k: long, alpha: 1, a: now.T(), b: now, c: p, symmetric: true}
		d.run(o)
		*d = directProduct{m: side, n: side, k: side, alpha: device.OrthogonalC, a: p, b: p,
			beta: device.OrthogonalB, old: p, c: q, symmetric: true}
		d.run(o)
		*d = directProduct{m: long, n: side, k: side, alpha: 1, a: now, b: q, beta: device.OrthogonalA, old: now,
			c: next}
		d.run(o)
		now, next = next, now
	}
	*d = directProduct{} // so that the pool keeps no operand alive
	if rows <= cols {
		now = now.T()
	}
	copied(o, whole, now, rows, cols)
	scaled(o, x, float32(scale))
}

// orthogonalRow returns the distance of the rows of an intermediate matrix with some columns: whole
// vectors, and no multiple of crowdedFloats.
func orthogonalRow(cols int) int {
	cols = kernel.Padded(cols)
	if cols%crowdedFloats == 0 {
		cols += kernel.LineFloats
	}
	return cols
}

// scaled multiplies x by a factor.
func scaled(o *kernel.Args, x []float32, factor float32) {
	if o.Threads() == 1 {
		vec.Scale(x, factor, x)
		return
	}
	o.ParallelRange(len(x), func(_ *kernel.Args, part, of int) {
		from, to := kernel.SplitUnits(part, of, len(x), kernel.LineFloats)
		vec.Scale(x[from:to], factor, x[from:to])
	})
}

// copied copies a matrix to another, whose rows are contiguous. from may be a transposed matrix.
func copied(o *kernel.Args, to, from tile.View, rows, cols int) {
	if o.Threads() == 1 {
		copiedRows(to, from, 0, rows, cols)
		return
	}
	o.ParallelRange(rows*cols, func(_ *kernel.Args, part, of int) {
		first, end := kernel.SplitUnits(part, of, rows, kernel.LineFloats)
		copiedRows(to, from, first, end, cols)
	})
}

func copiedRows(to, from tile.View, first, end, cols int) {
	if from.ColStride != 1 && first < end {
		storeTransposed(to.From(first, 0), from.T().From(0, first), end-first, cols)
		return
	}
	for i := first; i < end; i++ {
		copy(to.Data[i*to.RowStride:][:cols], from.Data[i*from.RowStride:])
	}
}
