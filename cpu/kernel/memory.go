package kernel

import (
	"unsafe"

	"fspda/internal/pages"
)

// CacheLine is the length of a cache line, and of the widest vector register, in bytes.
const CacheLine = 64

// LineFloats is the number of float32 in a cache line.
const LineFloats = CacheLine / 4

// largeVector is the length, in numbers, from which Aligned asks for huge pages.
const largeVector = 1 << 19

// Grow returns buf, or a new buffer if buf has fewer than n numbers.
func Grow(buf []float32, n int) []float32 {
	if len(buf) < n {
		return Aligned(n)
	}
	return buf
}

// Aligned returns n zeros that begin at a cache line. Every vector and every arena does: a vector
// register is then filled from one line and not from two, and the speed is the same in every run.
// Bits do not depend on it.
func Aligned(n int) []float32 {
	const most = CacheLine/4 - 1
	buf := make([]float32, n+most)
	if n >= largeVector {
		pages.Zeros(buf)
	}
	skip := 0
	if over := uintptr(unsafe.Pointer(unsafe.SliceData(buf))) % CacheLine; over != 0 {
		skip = int(CacheLine-over) / 4
	}
	return buf[skip : skip+n : skip+n]
}

// Padded returns n rounded up to whole cache lines.
func Padded(n int) int { return (n + LineFloats - 1) / LineFloats * LineFloats }
