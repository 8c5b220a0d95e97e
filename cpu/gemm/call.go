package gemm

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// call holds the arguments of Multiply with an epilogue, or of a product with one operand of bytes,
// which is not transposed, and beta = 0.
type call struct {
	transA, transB bool
	m, n, k        int
	alpha          float32
	a              []float32
	lda            int
	b              []float32
	ldb            int
	beta           float32
	c              []float32
	ldc            int
	epilogue       epilogue

	bytesA, bytesB kernel.ByteMatrix // replace a or b if it has bytes

	kind  tile.Kind // The kind of the numbers of a and b.
	words int       // numbers of scratch memory that hold the factors
}

// run computes the product on the calling goroutine.
func (g *call) run() {
	if g.m == 0 || g.n == 0 {
		return
	}
	a, b, c := operandView(g.transA, g.a, g.lda), operandView(g.transB, g.b, g.ldb), tile.RowMajor(g.c, g.ldc)
	c.Check("C", g.m, g.n)
	g.epilogue.check(g.m, g.n, g.ldc)
	switch {
	case g.bytesA.Bytes != nil:
		g.bytesA.Check("A", g.m, g.k)
		b.Check("B", g.k, g.n)
		productOfBytesA(g.m, g.n, g.k, g.alpha, g.bytesA, b, c, g.epilogue)
	case g.bytesB.Bytes != nil:
		a.Check("A", g.m, g.k)
		g.bytesB.Check("B", g.k, g.n)
		productOfBytesB(g.m, g.n, g.k, g.alpha, a, g.bytesB, c, g.epilogue)
	case g.k == 0 || g.alpha == 0:
		scaleRows(c, g.m, g.n, g.beta)
		g.epilogue.apply(0, 0, g.m, g.n, c)
	default:
		a.Check("A", g.m, g.k)
		b.Check("B", g.k, g.n)
		product(g.kind, g.m, g.n, g.k, g.alpha, a, b, g.beta, c, g.epilogue)
	}
}

// operandView returns op(X) of a matrix whose rows are stored ld numbers apart.
func operandView(trans bool, data []float32, ld int) tile.View {
	if trans {
		return tile.ColMajor(data, ld)
	}
	return tile.RowMajor(data, ld)
}

// parts returns the number of parts of C for a number of goroutines. Elements do not depend on the
// division.
func (g *call) parts(threads int) int {
	work := float64(g.m) * float64(g.n) * float64(g.k)
	return max(1, min(threads, int(work/tile.MinParallelWork), max(g.m, g.n)))
}

// part returns a part of the product: some rows of C, a multiple of unit, or some columns, in whole
// vectors, if C has more of them.
func (g *call) part(part, of, unit int) call {
	p := *g
	if g.m >= g.n {
		from, to := kernel.SplitUnits(part, of, g.m, unit)
		p.m = to - from
		p.a = sub(g.a, from, g.transA, g.lda)
		p.bytesA = g.bytesA.From(from, 0)
		p.c = sub(g.c, from, false, g.ldc)
		p.epilogue = g.epilogue.fromRow(from, g.ldc)
		return p
	}
	from, to := kernel.SplitUnits(part, of, g.n, 32)
	p.n = to - from
	p.b = sub(g.b, from, !g.transB, g.ldb)
	p.bytesB = g.bytesB.From(0, from)
	p.c = sub(g.c, from, true, g.ldc)
	p.epilogue = g.epilogue.fromCol(from)
	return p
}

// sub returns the matrix from row i on, or from column i on if it is transposed.
func sub(v []float32, i int, trans bool, ld int) []float32 {
	if !trans {
		i *= ld
	}
	return v[min(i, len(v)):]
}
