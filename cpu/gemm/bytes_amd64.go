//go:build !noasm

package gemm

import (
	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// The examples of a batch may be bytes (device.Batch). They then become numbers where the factor
// that they are is packed, so that a quarter of the memory is read, and no copy of them as numbers
// has to be written and fetched again. Both products of a layer see them as op(B): the gradient of
// the weights anyway, and y = x·Wᵀ when it is computed as (W·xᵀ)ᵀ.

// takesBytes says whether products over so many examples take them as bytes: as columns, they have
// to fill panels.
func TakesBytes(examples int) bool {
	return isa.Active != isa.Go && examples >= vec.PanelWidth()
}

// productOfBytes computes C = alpha·A·B and what follows, for an A of bytes.
func productOfBytesA(m, n, k int, alpha float32, a kernel.ByteMatrix, b, c tile.View, then epilogue) {
	transposedProduct(tile.Active(), m, n, k, alpha, tile.View{}, a, b, c, then)
}

// productByBytes computes C = alpha·A·B and what follows, for a B of bytes.
func productOfBytesB(m, n, k int, alpha float32, a tile.View, b kernel.ByteMatrix, c tile.View, then epilogue) {
	blockedProduct(tile.Active(), m, n, k, alpha, a, tile.View{}, b, 0, c, then)
}

// codedPanels packs columns of op(B), whose bytes begin at v, as panels does: all of them.
func (j *job) packBytePanels(v kernel.ByteMatrix, cols, depth int) (first int) {
	wide := 2 * j.Lanes
	if v.Transposed {
		for at := 0; at < cols; at += wide {
			vec.DecodeColumns(j.panelBuf[panelOffset(at, depth):], v.From(0, at), depth)
		}
		return 0
	}
	whole := cols / wide * wide
	if whole > 0 {
		vec.DecodePanels(j.panelBuf, panelOffset(wide, depth), v, depth, whole/wide)
	}
	if whole < cols {
		vec.DecodeRows(j.panelBuf[panelOffset(whole, depth):], wide, v.From(0, whole), depth, cols-whole)
	}
	return 0
}

// ask has the second cache fetch what the next block needs of op(B), where that is bytes: a share
// of the rows for each tile.
func (j *job) prefetchBytes() {
	if rows := min(j.nextBytes.perTile, j.nextBytes.rowsLeft); rows > 0 {
		j.nextBytes.prefetch(rows)
	}
}

// asking is rows of bytes of which some have been asked for.
type bytePrefetch struct {
	v                 kernel.ByteMatrix
	rowsLeft, perTile int // rows
	width             int // bytes of each
}

// askingFor shares the rows of a block among so many tiles. v begins where the block does.
func newBytePrefetch(v kernel.ByteMatrix, depth, cols, tiles int) bytePrefetch {
	if v.Transposed {
		depth, cols = cols, depth
	}
	return bytePrefetch{v, depth, (depth + tiles - 1) / tiles, cols}
}

// rows asks for the next n rows.
func (a *bytePrefetch) prefetch(n int) {
	vec.PrefetchRows(&a.v.Bytes[0], &a.v.Starts[0], n, a.width)
	a.v.Starts = a.v.Starts[n:]
	a.rowsLeft -= n
}
