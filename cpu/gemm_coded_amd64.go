//go:build !noasm

package cpu

import "fspda/cpu/isa"

// The examples of a batch may be bytes (device.Batch). They then become numbers where the factor
// that they are is packed, so that a quarter of the memory is read, and no copy of them as numbers
// has to be written and fetched again. Both products of a layer see them as op(B): the gradient of
// the weights anyway, and y = x·Wᵀ when it is computed as (W·xᵀ)ᵀ.

// takesBytes says whether products over so many examples take them as bytes: as columns, they have
// to fill panels.
func takesBytes(examples int) bool {
	return isa.Active != isa.Go && examples >= panelWidth()
}

// productOfBytes computes C = alpha·A·B and what follows, for an A of bytes.
func productOfBytes(m, n, k int, alpha float32, a coded, b, c view, then epilogue) {
	productTurned(activeSet(), m, n, k, alpha, view{}, a, b, c, then)
}

// productByBytes computes C = alpha·A·B and what follows, for a B of bytes.
func productByBytes(m, n, k int, alpha float32, a view, b coded, c view, then epilogue) {
	multiply(activeSet(), m, n, k, alpha, a, view{}, b, 0, c, then)
}

// codedPanels packs columns of op(B), whose bytes begin at v, as panels does: all of them.
func (j *job) codedPanels(v coded, cols, depth int) (first int) {
	wide := 2 * j.lanes
	if v.turned {
		for at := 0; at < cols; at += wide {
			decodeColumns(j.room[panelAt(at, depth):], v.from(0, at), depth)
		}
		return 0
	}
	whole := cols / wide * wide
	if whole > 0 {
		decodePanels(j.room, panelAt(wide, depth), v, depth, whole/wide)
	}
	if whole < cols {
		decodeRows(j.room[panelAt(whole, depth):], wide, v.from(0, whole), depth, cols-whole)
	}
	return 0
}

// ask has the second cache fetch what the next block needs of op(B), where that is bytes: a share
// of the rows for each tile.
func (j *job) ask() {
	if rows := min(j.asked.each, j.asked.left); rows > 0 {
		j.asked.rows(rows)
	}
}

// asking is rows of bytes of which some have been asked for.
type asking struct {
	v          coded
	left, each int // rows
	width      int // bytes of each
}

// askingFor shares the rows of a block among so many tiles. v begins where the block does.
func askingFor(v coded, depth, cols, tiles int) asking {
	if v.turned {
		depth, cols = cols, depth
	}
	return asking{v, depth, (depth + tiles - 1) / tiles, cols}
}

// rows asks for the next n rows.
func (a *asking) rows(n int) {
	askRowsAVX2(&a.v.bytes[0], &a.v.at[0], n, a.width)
	a.v.at = a.v.at[n:]
	a.left -= n
}
