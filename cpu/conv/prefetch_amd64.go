//go:build !noasm

package conv

import (
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// feed asks the cache for operands that will be needed later, while micro-kernels are at work: each
// of their products asks for a line. Memory is far, and a processor does not look ahead beyond the
// page it reads.
type prefetcher struct {
	ranges  [2]addressRange
	perTile int // bytes for a tile
}

// area is what is left of some memory, as addresses: nothing is read there.
type addressRange struct{ at, end uintptr }

func rangeOf(v []float32) addressRange {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	return addressRange{at, at + uintptr(4*len(v))}
}

// feedOf shares what will be needed among so many tiles.
func newPrefetcher(a, b []float32, tiles int) prefetcher {
	return prefetcher{[2]addressRange{rangeOf(a), rangeOf(b)}, 4*(len(a)+len(b))/tiles + kernel.CacheLine}
}

// give makes the next tile, whose a is set, ask for the next piece.
func (f *prefetcher) setNext(t *tile.Args, products int) {
	for i := range f.ranges {
		if m := &f.ranges[i]; m.at < m.end {
			t.Ahead, t.Step = int(m.at-uintptr(unsafe.Pointer(t.A))), min(kernel.CacheLine, f.perTile/products+1)
			m.at += uintptr(products * t.Step)
			return
		}
	}
	t.Ahead, t.Step = 0, 0
}

// askBeside makes the next tile, whose a and b are set, ask for what lies so many numbers further
// on in every row of b.
func prefetchColumns(t *tile.Args, far int) {
	t.Ahead, t.Step = int(uintptr(unsafe.Pointer(t.B))-uintptr(unsafe.Pointer(t.A)))+4*far, t.BRow
}
