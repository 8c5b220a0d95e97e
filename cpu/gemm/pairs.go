package gemm

import (
	"sync"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
	"fspda/device"
)

// PairKernels are the kernels of Kernels with factors that are rounded to bfloat16. Sums, biases,
// epilogues and results are float32. Every element is defined to the last bit, as in Multiply, with
// pairs of products in place of products ([tile.PairSum]): the first of a pair has an even
// index, and behind an odd number of products stands a zero.
//
// The factors are first written to scratch memory as pairs. A matrix of pairs is multiplied as one
// of numbers is. A product whose numbers are multiplied so rarely that rounding them takes longer
// than it saves has factors of float32: that depends on its dimensions only.
var PairKernels = kernel.Table{
	device.Linear:             pairKernel(forward, linear(addBias), nil),
	device.LinearSigmoid:      pairKernel(forward, linear(biasSigmoid), nil),
	device.LinearReLU:         pairKernel(forward, linear(biasReLU), nil),
	device.LinearGradX:        pairKernel(toInput, linearGradX(noEpilogue), nil),
	device.LinearGradXSigmoid: pairKernel(toInput, linearGradX(timesSigmoidGrad), nil),
	device.LinearGradXReLU:    pairKernel(toInput, linearGradX(timesReLUGrad), nil),
	device.LinearGradW:        pairKernel(toWeights, gradW, gradBias),
	device.LinearGradWDecay:   withDecay(pairKernel(toWeights, gradW, gradBias)),

	device.Product:             pairKernel(forward, linear(noEpilogue), nil),
	device.ProductGradW:        pairKernel(toWeights, gradW, nil),
	device.LinearGELUTanh:      pairKernel(forward, linearGELU(biasGELU, vec.Tanh), nil),
	device.LinearGELUErf:       pairKernel(forward, linearGELU(biasGELU, vec.Erf), nil),
	device.ProductGELUTanh:     pairKernel(forward, linearGELU(thenGELU, vec.Tanh), nil),
	device.ProductGELUErf:      pairKernel(forward, linearGELU(thenGELU, vec.Erf), nil),
	device.LinearGradXGELUTanh: pairKernel(toInput, linearGradXGELU(vec.Tanh), nil),
	device.LinearGradXGELUErf:  pairKernel(toInput, linearGradXGELU(vec.Erf), nil),
}

// pairKernel returns a kernel that computes one matrix product of pairs, and more work unless it is
// nil.
func pairKernel(shape func(dims []int) call, numbers func(o *kernel.Args) call,
	more func(o *kernel.Args, part, of int)) kernel.Kernel {
	if more == nil {
		more = func(*kernel.Args, int, int) {}
	}
	plain := kernel.Kernel{Pooled: pooled(shape), Scratch: together(shape), Run: productRun(numbers, more)}
	pairs := func(o *kernel.Args) call {
		g := numbers(o)
		return g.pairs(o.Scratch)
	}
	shapeOf := func(dims []int) call {
		g := shape(dims)
		return g.pairs(nil)
	}
	narrow := func(o *kernel.Args, part, of int) {
		g := numbers(o)
		p := g.pairs(o.Scratch)
		if g.transA && !p.transA {
			narrowTransposed(tile.RowMajor(p.a, p.lda), g.a, g.lda, g.m, g.k, part, of)
		} else {
			narrowFactor(tile.RowMajor(p.a, p.lda), g.a, g.transA, g.lda, g.m, g.k, part, of)
		}
		narrowFactor(tile.RowMajor(p.b, p.ldb), g.b, !g.transB, g.ldb, g.n, g.k, part, of)
	}
	product, pooledPairs := productRun(pairs, more), pooled(shapeOf)
	return kernel.Kernel{
		Pooled: func(dims []int, threads int) int {
			if g := shape(dims); !g.worthRounding() {
				return plain.Pooled(dims, threads)
			}
			return pooledPairs(dims, threads)
		},
		Scratch: func(dims []int, threads int) int {
			if g := shape(dims); !g.worthRounding() {
				return plain.Scratch(dims, threads)
			}
			g := shapeOf(dims)
			return g.words + g.togetherSize(threads)
		},
		Run: func(o *kernel.Args) error {
			g := numbers(o)
			if !g.worthRounding() {
				return plain.Run(o)
			}
			o.Parallel(max(1, min(o.Threads(), (g.m+g.n)*g.k/(16<<10))), narrow)
			return product(o)
		}}
}

// worthRounding reports whether numbers are multiplied often enough, and sums are long enough.
func (g *call) worthRounding() bool {
	const least = 32 // times, in the mean of both factors
	return g.k >= least && 2*g.m*g.n >= least*(g.m+g.n)
}

// pairs returns the product of the same factors as pairs, which lie in scratch.
func (g *call) pairs(scratch []float32) call {
	p := *g
	p.kind, p.k, p.lda, p.ldb = tile.Pairs, (g.k+1)/2, g.m, g.n
	rowsOfA, rowsOfB := p.k, p.k
	if s := p.kind.Set(); s != nil && s.RowsOnly {
		p.transA = false
	}
	if !p.transA {
		rowsOfA, p.lda = g.m, tile.Spread(p.k)
	}
	if g.transB {
		rowsOfB, p.ldb = g.n, tile.Spread(p.k)
	}
	sizeOfA := kernel.Padded(rowsOfA * p.lda)
	p.words = sizeOfA + kernel.Padded(rowsOfB*p.ldb)
	if scratch != nil {
		p.a, p.b = scratch[:sizeOfA], scratch[sizeOfA:p.words]
	}
	return p
}

// narrowFactor writes a part of the pairs of a factor of `side` rows and k products: row after row,
// or, if the products lie across the rows of the matrix, a row of pairs for two of its rows.
func narrowFactor(to tile.View, from []float32, across bool, ld, side, k, part, of int) {
	pairs := (k + 1) / 2
	if !across {
		first, end := kernel.SplitUnits(part, of, side, 1)
		for i := first; i < end; i++ {
			tile.Narrow(to.Data[i*to.RowStride:][:pairs], from[i*ld:][:k])
		}
		return
	}
	first, end := kernel.SplitUnits(part, of, pairs, 1)
	for p := first; p < end; p++ {
		narrowRows(to.Data[p*to.RowStride:][:side], from, ld, 0, p, k)
	}
}

// narrowRows writes pairs of rows 2p and 2p+1 of k, from a column on.
func narrowRows(to, from []float32, ld, column, p, k int) {
	row, next := from[2*p*ld+column:][:len(to)], []float32(nil)
	if 2*p+1 < k {
		next = from[(2*p+1)*ld+column:][:len(to)]
	}
	tile.Between(to, row, next)
}

// Some rows and columns of pairs that are transposed at a time.
const someRows, someColumns = 8, 256

var somePairs = sync.Pool{New: func() any { return new([someRows * someColumns]float32) }}

// narrowTransposed writes a part of the pairs of a factor whose products lie across the rows of the
// matrix, row after row.
func narrowTransposed(to tile.View, from []float32, ld, side, k, part, of int) {
	some := somePairs.Get().(*[someRows * someColumns]float32)
	defer somePairs.Put(some)
	pairs := (k + 1) / 2
	first, end := kernel.SplitUnits(part, of, pairs, kernel.LineFloats)
	for p := first; p < end; p += someRows {
		rows := min(someRows, end-p)
		for column := 0; column < side; column += someColumns {
			columns := min(someColumns, side-column)
			for r := range rows {
				narrowRows(some[r*someColumns:][:columns], from, ld, column, p+r, k)
			}
			tile.PackTransposed(to.Data[column*to.RowStride+p:], to.RowStride, tile.RowMajor(some[:], someColumns),
				rows, columns)
		}
	}
}
