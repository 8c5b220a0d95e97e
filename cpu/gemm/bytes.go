package gemm

import (
	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
)

// The examples of a batch may be bytes (device.Batch). They are decoded while they are packed: this
// reads a quarter of the memory, and no decoded copy has to be written and read again. Both
// products of a layer have them as op(B): the gradient of the weights by definition, and y = x·Wᵀ
// if it is computed as (W·xᵀ)ᵀ.

// TakesBytes reports whether products over a number of examples can read them as bytes: as columns,
// they must fill panels.
func TakesBytes(examples int) bool { return isa.Assembly() && examples >= vec.PanelWidth() }

// productOfBytesA computes C = alpha·A·B and the epilogue, for an A of bytes.
func productOfBytesA(m, n, k int, alpha float32, a kernel.ByteMatrix, b, c tile.View, then epilogue) {
	transposedProduct(tile.Active(), m, n, k, alpha, tile.View{}, a, b, c, then)
}

// productOfBytesB computes C = alpha·A·B and the epilogue, for a B of bytes.
func productOfBytesB(m, n, k int, alpha float32, a tile.View, b kernel.ByteMatrix, c tile.View, then epilogue) {
	blockedProduct(tile.Active(), m, n, k, alpha, a, tile.View{}, b, 0, c, then, packedFactors{})
}

// packBytePanels packs columns of op(B), whose bytes begin at v, as packPanels does. It packs all
// of them.
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

// prefetchBytes prefetches the operand op(B) of the next block into the second-level cache if that
// is bytes: a share of the rows for each tile.
func (j *job) prefetchBytes() {
	if rows := min(j.nextBytes.perTile, j.nextBytes.rowsLeft); rows > 0 {
		j.nextBytes.prefetch(rows)
	}
}

// bytePrefetch is a range of rows of bytes, some of which have been prefetched.
type bytePrefetch struct {
	v                 kernel.ByteMatrix
	rowsLeft, perTile int // rows
	width             int // bytes of each
}

// newBytePrefetch divides the rows of a block among the tiles. v begins where the block does.
func newBytePrefetch(v kernel.ByteMatrix, depth, cols, tiles int) bytePrefetch {
	if v.Transposed {
		depth, cols = cols, depth
	}
	return bytePrefetch{v, depth, (depth + tiles - 1) / tiles, cols}
}

func (a *bytePrefetch) prefetch(n int) {
	vec.PrefetchRows(&a.v.Bytes[0], &a.v.Starts[0], n, a.width)
	a.v.Starts = a.v.Starts[n:]
	a.rowsLeft -= n
}
