package cpu

import (
	"sync"
	"unsafe"

	"fspda/cpu/kernel"
	"fspda/internal/pages"
)

// Vectors of a network of some ten thousand parameters are shorter than a large page, and the
// agents of a run have dozens of them, more pages than the processor remembers the addresses of. So
// a Device cuts them from slabs in large pages. The garbage collector frees a slab with its last
// vector.

const (
	hugePageFloats = 2 << 20 / 4 // numbers of a large page
	minSlabVector  = 1 << 12     // numbers of the shortest vector from a slab
	minSlab        = 1 << 20     // numbers of a Device's first slab; a longer vector is its own
	maxSlab        = 1 << 22
)

// slabs cuts vectors.
type slabAllocator struct {
	mu        sync.Mutex
	rest      []float32 // of the newest slab, from the begin of a cache line on
	allocated int       // numbers in all slabs
}

// cut returns n zeros that begin at a cache line. What it cuts from does not fit may be lost: it
// was never touched, and takes no memory.
func (s *slabAllocator) alloc(n int) []float32 {
	if n < minSlabVector || n >= minSlab {
		return kernel.Aligned(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) < n {
		s.rest = newSlab(min(max(minSlab, s.allocated), maxSlab))
		s.allocated += len(s.rest)
	}
	v := s.rest[:n:n]
	s.rest = s.rest[min(len(s.rest), (n+kernel.LineFloats-1)/kernel.LineFloats*kernel.LineFloats):]
	return v
}

// newSlab returns n zeros that begin at a large page.
func newSlab(n int) []float32 {
	buf := make([]float32, n+hugePageFloats)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%(4*hugePageFloats)) / 4
	buf = buf[skip : skip+n]
	pages.Zeros(buf)
	return buf
}
