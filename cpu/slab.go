package cpu

import (
	"sync"

	"fspda/cpu/kernel"
	"fspda/internal/pages"
)

// Vectors of a network of some ten thousand parameters are shorter than a huge page, and the agents
// of a run have dozens of them, on more pages than the TLB holds. So a Device cuts them from slabs
// in huge pages. The garbage collector frees a slab with its last vector. A vector of a huge page
// or more gets its own memory.

const (
	hugePageFloats = 2 << 20 / 4 // numbers of a huge page
	minSlabVector  = 1 << 12     // the shortest vector that is cut from a slab
	minSlab        = 1 << 20     // the shortest slab; slabs hold whole vectors
)

// slabAllocator cuts vectors from slabs.
type slabAllocator struct {
	mu   sync.Mutex
	rest []float32 // the unused numbers of the newest slab, which begin a cache line
}

// alloc returns n zeros that begin at a cache line. The rest of a slab that is too short is lost:
// it was never touched, and takes no memory.
func (s *slabAllocator) alloc(n int) []float32 {
	if n < minSlabVector || n >= hugePageFloats {
		return kernel.Aligned(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	padded := kernel.Padded(n)
	if len(s.rest) < padded {
		s.rest = newSlab((minSlab + padded - 1) / padded * padded)
	}
	v := s.rest[:n:n]
	s.rest = s.rest[padded:]
	return v
}

// newSlab returns n zeros. Slabs that follow each other in memory share huge pages.
func newSlab(n int) []float32 {
	buf := make([]float32, n)
	pages.Zeros(buf)
	return buf
}
