package conv

import (
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// prefetcher prefetches operands that will be needed later while micro-kernels run: each of their
// products prefetches a line. The processor itself does not prefetch beyond the page it reads.
type prefetcher struct {
	ranges  [2]addressRange
	perTile int // bytes for each tile
}

// addressRange is the rest of some memory to prefetch, as addresses.
type addressRange struct{ at, end uintptr }

func rangeOf(v []float32) addressRange {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	return addressRange{at, at + uintptr(4*len(v))}
}

// newPrefetcher divides two operands among the tiles.
func newPrefetcher(a, b []float32, tiles int) prefetcher {
	return prefetcher{[2]addressRange{rangeOf(a), rangeOf(b)}, 4*(len(a)+len(b))/tiles + kernel.CacheLine}
}

// setNext makes the next tile, whose A is set, prefetch the next piece.
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

// prefetchedColumns are columns of the block, a number of bytes from row to row.
type prefetchedColumns struct {
	first *float32
	next  int
}

// setNext makes the next tile, whose A is set, prefetch the columns that are far numbers further on
// in every row.
func (c prefetchedColumns) setNext(t *tile.Args, far int) {
	t.Ahead, t.Step = int(uintptr(unsafe.Pointer(c.first))-uintptr(unsafe.Pointer(t.A)))+4*far, c.next
}
