package gemm

import (
	"math"
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
	"fspda/device"
)

// symmetricRows is the height of the blocks of a symmetric product that goroutines share. With it the
// share of packing is small.
const symmetricRows = 96

// orthogonalBuffer holds the intermediate matrices of an orthogonalization.
type orthogonalBuffer struct{ numbers []float32 }

var orthogonalPool = sync.Pool{New: func() any { return new(orthogonalBuffer) }}

// Orthogonalize computes a matrix of [device.Orthogonalize] in place, in x, whose rows follow each
// other. The goroutines of o share the products. Every element is defined to the last bit: the sum
// of squares has the bits of [device.Dot], the reciprocal of the norm is rounded to float32, and
// products have the bits of [Multiply]. Symmetric products are computed below the diagonal and
// mirrored, which gives the same bits, since factors may be exchanged.
func Orthogonalize(o *kernel.Args, x []float32, rows, cols int, scale float64) {
	side, n := min(rows, cols), rows*cols
	if n == 0 {
		return
	}
	b := orthogonalPool.Get().(*orthogonalBuffer)
	defer orthogonalPool.Put(b)
	ld, ldp := orthogonalRow(cols), orthogonalRow(side)
	if size := 2*rows*ld + 2*side*ldp; len(b.numbers) < size {
		b.numbers = kernel.Aligned(size)
	}
	rest := b.numbers
	cut := func(size int) (v []float32) { v, rest = rest[:size], rest[size:]; return v }
	now, next, p, q := cut(rows*ld), cut(rows*ld), cut(side*ldp), cut(side*ldp)
	norm := math.Sqrt(vec.SumOfSquares(x[:n]))
	scaled(o, now, ld, x, cols, rows, cols, float32(1/max(norm, device.OrthogonalMinNorm)))
	left := rows <= cols // the small products stand left of X
	for range device.OrthogonalSteps {
		symmetric(o, side, call{transA: !left, transB: left, k: max(rows, cols), alpha: 1, a: now, lda: ld, b: now,
			ldb: ld, c: p, ldc: ldp})
		copy(q, p)
		symmetric(o, side, call{k: side, alpha: device.OrthogonalC, a: p, lda: ldp, b: p, ldb: ldp,
			beta: device.OrthogonalB, c: q, ldc: ldp})
		copy(next, now)
		g := call{m: rows, n: cols, k: side, alpha: 1, a: q, lda: ldp, b: now, ldb: ld, beta: device.OrthogonalA,
			c: next, ldc: ld}
		if !left {
			g.a, g.lda, g.b, g.ldb = now, ld, q, ldp
		}
		o.Parallel(g.parts(o.Threads()), func(_ *kernel.Args, part, of int) {
			one := g.part(part, of, 1)
			one.run()
		})
		now, next = next, now
	}
	scaled(o, x, cols, now, ld, rows, cols, float32(scale))
}

// orthogonalRow returns the distance of the rows of an intermediate matrix with some columns.
// Products read rows in place unless they are a multiple of crowdedFloats apart.
func orthogonalRow(cols int) int {
	if cols%crowdedFloats == 0 {
		cols += kernel.LineFloats
	}
	return cols
}

// scaled computes to = factor·from over matrices, whose rows are apart by ldTo and ldFrom numbers.
func scaled(o *kernel.Args, to []float32, ldTo int, from []float32, ldFrom, rows, cols int, factor float32) {
	o.ParallelRange(rows*cols, func(_ *kernel.Args, part, of int) {
		first, end := kernel.SplitUnits(part, of, rows, 1)
		for i := first; i < end; i++ {
			vec.Scale(to[i*ldTo:][:cols], factor, from[i*ldFrom:][:cols])
		}
	})
}

// symmetric computes a product that is a symmetric matrix of side × side. whole is all of the
// product but its size.
func symmetric(o *kernel.Args, side int, whole call) {
	whole.m, whole.n = side, side/2+1
	blocks, rows := 1, side
	if whole.parts(o.Threads()) > 1 {
		blocks, rows = (side+symmetricRows-1)/symmetricRows, symmetricRows
	}
	run := func(_ *kernel.Args, part, _ int) {
		from := (blocks - 1 - part) * rows // the longest ones first
		to, g := min(from+rows, side), whole
		g.m, g.n = to-from, to
		g.a, g.c = sub(g.a, from, g.transA, g.lda), g.c[from*g.ldc:]
		g.runBelow(from + 1)
	}
	if blocks == 1 {
		run(o, 0, 1)
	} else {
		o.Parallel(blocks, run)
	}
	mirror(tile.RowMajor(whole.c, whole.ldc), side)
}

// runBelow is run for the elements in columns 0, ..., diagonal+i-1 of each row i, and for the rest of
// the squares that mirror takes to be whole.
func (g *call) runBelow(diagonal int) {
	s := g.kind.Set()
	if s == nil {
		g.run()
		return
	}
	a, b := operandView(g.transA, g.a, g.lda), operandView(g.transB, g.b, g.ldb)
	j := job{Set: s, m: g.m, n: g.n, k: g.k, a: a, b: b, c: tile.RowMajor(g.c, g.ldc), packA: shouldPackA(s, a, g.n),
		packB: shouldPackB(b, g.m), diagonal: diagonal}
	j.run(g.alpha, g.beta)
}

// mirrorUnit is the number of rows that mirror copies as columns at a time.
const mirrorUnit = 8

// mirror copies the part of a symmetric matrix below its diagonal above it. The squares of
// mirrorUnit rows on the diagonal are whole already, but for one that ends with the matrix.
func mirror(c tile.View, side int) {
	whole := side / mirrorUnit * mirrorUnit
	for i := 0; i < whole; i += mirrorUnit {
		tile.PackTransposed(c.Data[i:], c.RowStride, c.From(i, 0), mirrorUnit, i)
	}
	for i := whole; i < side; i++ {
		for j := range i {
			c.Data[j*c.RowStride+i] = c.Data[i*c.RowStride+j]
		}
	}
}
