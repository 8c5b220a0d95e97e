package gemm

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// product is call.run without its checks.
func product(kind tile.Kind, m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View, then epilogue) {
	s := kind.Set()
	if s == nil {
		plainProduct(kind, m, n, k, alpha, a, b, beta, c, then)
		return
	}
	packedProduct(s, m, n, k, alpha, a, b, beta, c, then)
}

// workspace returns the numbers of memory that the product takes from pools.
func (g *call) workspace() int {
	s := g.kind.Set()
	if s == nil {
		return 0
	}
	a, b := operandView(g.transA, nil, g.lda), operandView(g.transB, nil, g.ldb)
	if m, n, k := g.m, g.n, g.k; worthTransposing(s, m, n, k, a, b, g.beta) {
		rows := call{transA: !g.transB, transB: !g.transA, m: n, n: min(transposedRows, m), k: k, lda: g.ldb,
			ldb: g.lda, kind: g.kind}
		return n*transposedRows + rows.blockWorkspace(s)
	}
	return g.blockWorkspace(s)
}

// blockWorkspace is workspace of a product that is not transposed.
func (g *call) blockWorkspace(s *tile.Set) int {
	a, b := operandView(g.transA, nil, g.lda), operandView(g.transB, nil, g.ldb)
	j := job{Set: s, m: g.m, n: g.n, k: g.k, a: a, packA: shouldPackA(s, a, g.n), packB: shouldPackB(b, g.m)}
	_, depth := kernel.Split(0, tile.Chunks(g.k), g.k)
	size := panelOffset(blockCols, tile.Depth)
	if j.packsWholeB() {
		size += tile.Chunks(g.k) * j.panelsSize()
	}
	if j.packA {
		size += j.strips(min(g.m, blockRows)) * stripSize(s, depth)
	}
	return size
}
