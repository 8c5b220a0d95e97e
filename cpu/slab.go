package cpu

import (
	"sync"
	"unsafe"

	"fspda/internal/pages"
)

// Vectors of a network of some ten thousand parameters are shorter than a large page, and the
// agents of a run have dozens of them, more pages than the processor remembers the addresses of. So
// a Device cuts them from slabs in large pages. The garbage collector frees a slab with its last
// vector.

const (
	largePage  = 2 << 20 / 4 // numbers of a large page
	slabVector = 1 << 12     // numbers of the shortest vector from a slab
	leastSlab  = 1 << 20     // numbers of a Device's first slab; a longer vector is its own
	mostSlab   = 1 << 22
)

// slabs cuts vectors.
type slabs struct {
	mu    sync.Mutex
	left  []float32 // of the newest slab, from the begin of a cache line on
	given int       // numbers in all slabs
}

// cut returns n zeros that begin at a cache line. What it cuts from does not fit may be lost: it
// was never touched, and takes no memory.
func (s *slabs) cut(n int) []float32 {
	if n < slabVector || n >= leastSlab {
		return aligned(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) < n {
		s.left = newSlab(min(max(leastSlab, s.given), mostSlab))
		s.given += len(s.left)
	}
	v := s.left[:n:n]
	s.left = s.left[min(len(s.left), (n+perLine-1)/perLine*perLine):]
	return v
}

// newSlab returns n zeros that begin at a large page.
func newSlab(n int) []float32 {
	buf := make([]float32, n+largePage)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%(4*largePage)) / 4
	buf = buf[skip : skip+n]
	pages.Zeros(buf)
	return buf
}
