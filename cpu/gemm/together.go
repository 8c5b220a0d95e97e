package gemm

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// The parts of a product are rows of C, which all read op(B), or columns, which all read op(A). If
// that factor has to be packed and is small, the goroutines pack it together, and then divide C
// more finely than there are goroutines: the one that is faster takes more parts.

// mostTogether is the largest size of a factor that is packed together: it is read from the
// third-level cache.
const mostTogether = 1 << 18

// togetherSize returns the length of the memory for the factor that the goroutines pack together, 0
// if they do not.
func (g *call) togetherSize(threads int) int {
	s, parts := g.kind.Set(), g.parts(threads)
	if s == nil || parts == 1 || g.bytesA.Bytes != nil || g.bytesB.Bytes != nil || g.beta != 0 || g.n%s.Lanes != 0 {
		return 0
	}
	j := g.packing(s)
	if g.m >= g.n {
		if g.n*g.k > mostTogether || !shouldPackB(j.b, g.m/parts) {
			return 0
		}
		return tile.Chunks(g.k) * j.panelsSize()
	}
	if g.m*g.k > mostTogether || g.m > blockRows || !shouldPackA(s, j.a, g.n/parts) {
		return 0
	}
	return tile.Chunks(g.k) * j.stripsSize()
}

// packing returns a job to pack a factor.
func (g *call) packing(s *tile.Set) *job {
	return &job{Set: s, m: g.m, n: g.n, k: g.k, a: operandView(g.transA, g.a, g.lda),
		b: operandView(g.transB, g.b, g.ldb), packB: true}
}

// packTogether packs a part of the factor.
func (g *call) packTogether(to []float32, part, of int) {
	j := g.packing(g.kind.Set())
	chunks, wide, pieces := tile.Chunks(g.k), 2*j.Lanes, j.strips(g.m)
	if g.m >= g.n {
		pieces, j.packed.b = (g.n+wide-1)/wide, to
	}
	begin, end := kernel.SplitUnits(part, of, chunks*pieces, 1)
	for chunk := begin / pieces; chunk*pieces < end; chunk++ {
		p, depth := kernel.Split(chunk, chunks, g.k)
		first, last := max(begin-chunk*pieces, 0), min(end-chunk*pieces, pieces)
		if g.m >= g.n {
			col := first * wide
			j.panelBuf = j.panels(chunk, col, depth)
			j.packPanels(j.b.From(p, col), min(last*wide, g.n)-col, depth)
		} else {
			j.packStrips(to[chunk*j.stripsSize():], j.a.From(0, p), first, last, pieces, g.m, depth)
		}
	}
}

// finer returns the approximate number of parts of C that each of the goroutines computes.
func (g *call) finer(threads int) int {
	const least, most = 3 * tile.MinParallelWork, 4
	return max(1, min(most, g.m*g.n*g.k/threads/least))
}

func (g *call) runPacked(factor []float32, part, of int) {
	s, packed := g.kind.Set(), packedFactors{b: factor}
	if g.m < g.n {
		packed = packedFactors{a: factor}
	}
	p := g.part(part, of, len(s.Tiles))
	if p.m == 0 || p.n == 0 {
		return
	}
	blockedProduct(s, p.m, p.n, p.k, p.alpha, operandView(p.transA, p.a, p.lda), operandView(p.transB, p.b, p.ldb),
		kernel.ByteMatrix{}, 0, tile.RowMajor(p.c, p.ldc), p.epilogue, packed)
}
