package gemm

import (
	"math"
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// symmetricRows is the height of the blocks in which a symmetric product is computed. With it, the
// part above the diagonal that is computed as well is small, and so is the share of packing.
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
	if size := (device.Block{Rows: rows, Cols: cols}).Scratch(); len(b.numbers) < size {
		b.numbers = make([]float32, size)
	}
	cut := func(from, size int) []float32 { return b.numbers[from:][:size] }
	now, next, p, q := cut(0, n), cut(n, n), cut(2*n, side*side), cut(2*n+side*side, side*side)
	norm := math.Sqrt(vec.SumOfSquares(x[:n]))
	scaled(o, now, x, float32(1/max(norm, device.OrthogonalMinNorm)))
	left := rows <= cols // the small products stand left of X
	for range device.OrthogonalSteps {
		symmetric(o, side, func(g *call) {
			*g = call{transA: !left, transB: left, k: max(rows, cols), alpha: 1, a: now, lda: cols, b: now, ldb: cols,
				c: p}
		})
		copy(q, p)
		symmetric(o, side, func(g *call) {
			*g = call{k: side, alpha: device.OrthogonalC, a: p, lda: side, b: p, ldb: side,
				beta: device.OrthogonalB, c: q}
		})
		copy(next, now)
		g := call{m: rows, n: cols, k: side, alpha: 1, a: q, lda: side, b: now, ldb: cols, beta: device.OrthogonalA,
			c: next, ldc: cols}
		if !left {
			g.a, g.lda, g.b, g.ldb = now, cols, q, side
		}
		o.Parallel(g.parts(o.Threads()), func(_ *kernel.Args, part, of int) {
			one := g.part(part, of, 1)
			one.run()
		})
		now, next = next, now
	}
	scaled(o, x, now, float32(scale))
}

// scaled computes to = factor·from over the numbers of from.
func scaled(o *kernel.Args, to, from []float32, factor float32) {
	n := min(len(to), len(from))
	o.ParallelRange(n, func(_ *kernel.Args, part, of int) {
		first, end := kernel.SplitUnits(part, of, n, kernel.LineFloats)
		d := to[first:end]
		for i, v := range from[first:end] {
			d[i] = factor * v
		}
	})
}

// symmetric computes a product that is a symmetric matrix of side × side. describe sets all of the
// product but its size.
func symmetric(o *kernel.Args, side int, describe func(*call)) {
	blocks := (side + symmetricRows - 1) / symmetricRows
	run := func(_ *kernel.Args, part, _ int) {
		from := (blocks - 1 - part) * symmetricRows // the longest ones first
		to := min(from+symmetricRows, side)
		var g call
		describe(&g)
		g.m, g.n, g.ldc = to-from, to, side
		g.a, g.c = sub(g.a, from, g.transA, g.lda), g.c[from*side:]
		g.run()
	}
	var whole call
	describe(&whole)
	whole.m, whole.n = side, side/2+1
	if whole.parts(o.Threads()) == 1 {
		for part := range blocks {
			run(o, part, blocks)
		}
	} else {
		o.Parallel(blocks, run)
	}
	mirror(whole.c, side)
}

// mirror copies the part of a matrix below its diagonal above it.
func mirror(c []float32, side int) {
	for i := range side {
		for j := range i {
			c[j*side+i] = c[i*side+j]
		}
	}
}
