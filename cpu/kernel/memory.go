package kernel

import (
	"unsafe"

	"fspda/internal/pages"
)

// line is the length of a cache line, and of the widest vector register, in bytes.
const CacheLine = 64

// perLine is how many numbers a line of the cache holds.
const LineFloats = CacheLine / 4

// largeVector is the length from which memory of its own asks for large pages.
const largeVector = 1 << 20

// atLeast returns buf, or a new buffer where that has less than n numbers.
func Grow(buf []float32, n int) []float32 {
	if len(buf) < n {
		return Aligned(n)
	}
	return buf
}

// aligned returns n zeros that begin at a cache line. Every vector and every arena does: a vector
// register is then filled from one line and not from two, and speed is the same in every run. Bits
// do not depend on it.
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

// padded is n rounded up to whole vectors.
func Padded(n int) int { return (n + LineFloats - 1) / LineFloats * LineFloats }
