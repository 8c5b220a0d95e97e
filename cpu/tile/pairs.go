package tile

import (
	"math"
	"unsafe"

	"fspda/cpu/kernel"
)

// A pair is two bfloat16 numbers, in the bits of a float32 number, the first in the lower half. All
// that moves numbers moves pairs. Numbers smaller than 2⁻¹²⁶ in size are zeros of their sign, as
// factors and as sums: so do instructions on bfloat16 numbers.

// Pair returns the pair of two numbers, each rounded to the nearest bfloat16 number, and to the
// even one of two.
func Pair(a, b float32) float32 {
	return math.Float32frombits(bfloat(a)>>16 | bfloat(b))
}

// bfloat returns the bits of a number rounded to bfloat16, in the upper half.
func bfloat(x float32) uint32 {
	u := math.Float32bits(x)
	switch {
	case x != x:
		return u&0xffff0000 | 1<<22
	case u&0x7f800000 == 0:
		return u & (1 << 31)
	}
	return (u + 0x7fff + u>>16&1) & 0xffff0000
}

// PairSum returns s plus the products of a pair: first the product of the second numbers is
// added, then the product of the first, each rounded once.
func PairSum(a, b, s float32) float32 {
	x, y := math.Float32bits(a), math.Float32bits(b)
	s = flushed(float32(FMA(upper(x), upper(y), float64(flushed(s)))))
	return flushed(float32(FMA(upper(x<<16), upper(y<<16), float64(s))))
}

// upper returns the bfloat16 number in the upper half of a word.
func upper(u uint32) float64 { return float64(flushed(math.Float32frombits(u & 0xffff0000))) }

// flushed returns x, or a zero of its sign if it is smaller than a normal number.
func flushed(x float32) float32 {
	if u := math.Float32bits(x); u&0x7f800000 == 0 {
		return math.Float32frombits(u & (1 << 31))
	}
	return x
}

// pairSums is plainSums for pairs.
func pairSums(depth int, a View, row [PlainRows]int, b View, col [PlainCols]int) (s [PlainRows][PlainCols]float32) {
	for p := range depth {
		for i, x := range row {
			for j, y := range col {
				s[i][j] = PairSum(a.Data[p*a.ColStride+x], b.Data[p*b.RowStride+y], s[i][j])
			}
		}
	}
	return s
}

// tileSums is the definition of sums of AMX. Of 16 pairs, the products of the second numbers are
// added one by one, beginning with +0, and so are the products of the first; both sums are added,
// and the result is added to the sums of the pairs before. Each sum is rounded. Zeros stand behind
// the last pair.
func tileSums(depth int, a View, row [PlainRows]int, b View, col [PlainCols]int) (s [PlainRows][PlainCols]float32) {
	for i, x := range row {
		for j, y := range col {
			for from := 0; from < depth; from += 16 {
				s[i][j] = addTile(s[i][j], min(16, depth-from), a.Data[from*a.ColStride+x:], a.ColStride,
					b.Data[from*b.RowStride+y:], b.RowStride)
			}
		}
	}
	return s
}

// definitionOfPairs is the definition of the fastest set of pairs of this processor, which Go's
// loops compute as well.
var definitionOfPairs = func() func(int, View, [PlainRows]int, View, [PlainCols]int) [PlainRows][PlainCols]float32 {
	for _, s := range pairSets {
		if s != nil {
			return s.sums
		}
	}
	return pairSums
}()

// PairUnit names what computes products of pairs.
func PairUnit() string {
	switch s := Pairs.Set(); {
	case s == nil:
		return "loops in Go"
	case s.RowsOnly:
		return "tiles of AMX"
	}
	return "AVX-512 BF16"
}

// Tiles reports whether Pairs are added as AMX does it. Where there is AMX, Dots are no faster than
// float32 numbers.
func Tiles() bool {
	for _, s := range pairSets {
		if s != nil && s.RowsOnly {
			return true
		}
	}
	return false
}

// PairOrder names the order of the sums of Pairs, which is the same for all units but AMX.
func PairOrder() string {
	if s := Pairs.Set(); s != nil && s.RowsOnly {
		return "tiles of 16 pairs"
	}
	return "pair by pair"
}

// wholeBlocks calls a function of the set of Dots for whole blocks of pairs, and returns how many
// pairs they are.
func wholeBlocks(pairs int, f func(s *Set, blocks int)) int {
	s, blocks := Dots.Set(), pairs/16
	if s == nil || blocks == 0 {
		return 0
	}
	f(s, blocks)
	return 16 * blocks
}

// Narrow writes the pairs of neighbours of src, and a zero behind an odd number of them.
func Narrow(dst, src []float32) {
	pairs := len(src) / 2
	whole := wholeBlocks(pairs, func(s *Set, blocks int) { s.narrow(&dst[0], &src[0], nil, blocks) })
	for i := whole; i < pairs; i++ {
		dst[i] = Pair(src[2*i], src[2*i+1])
	}
	if len(src)%2 != 0 {
		dst[pairs] = Pair(src[len(src)-1], 0)
	}
}

// NarrowStream is Narrow with non-temporal stores where dst allows them. Fence completes them.
func NarrowStream(dst, src []float32) {
	if uintptr(unsafe.Pointer(unsafe.SliceData(dst)))%kernel.CacheLine != 0 {
		Narrow(dst, src)
		return
	}
	whole := wholeBlocks(len(src)/2, func(s *Set, blocks int) { s.narrowStream(&dst[0], &src[0], nil, blocks) })
	Narrow(dst[whole:], src[2*whole:])
}

// Fence completes the stores of NarrowStream.
func Fence() {
	if s := Dots.Set(); s != nil {
		s.fence()
	}
}

// Widen writes the numbers of pairs: dst[2i] is the first of src[i].
func Widen(dst, src []float32) {
	dst = dst[:2*len(src)]
	whole := wholeBlocks(len(src), func(s *Set, blocks int) { s.widen(&dst[0], &src[0], nil, blocks) })
	for i := whole; i < len(src); i++ {
		u := math.Float32bits(src[i])
		dst[2*i], dst[2*i+1] = math.Float32frombits(u<<16), math.Float32frombits(u&0xffff0000)
	}
}

// Between writes the pairs of a[i] and b[i]. A nil b stands for zeros.
func Between(dst, a, b []float32) {
	if b == nil {
		for i, x := range a {
			dst[i] = Pair(x, 0)
		}
		return
	}
	dst, b = dst[:len(a)], b[:len(a)]
	whole := wholeBlocks(len(a), func(s *Set, blocks int) { s.between(&dst[0], &a[0], &b[0], blocks) })
	for i := whole; i < len(a); i++ {
		dst[i] = Pair(a[i], b[i])
	}
}

// Interleave is Between for numbers that are pairs: dst[2i] is the pair of the first numbers of a[i]
// and b[i], and dst[2i+1] of the second.
func Interleave(dst, a, b []float32) {
	whole := 0
	if b != nil {
		dst, b = dst[:2*len(a)], b[:len(a)]
		whole = wholeBlocks(len(a), func(s *Set, blocks int) { s.interleave(&dst[0], &a[0], &b[0], blocks) })
	}
	for i := whole; i < len(a); i++ {
		u, v := math.Float32bits(a[i]), uint32(0)
		if b != nil {
			v = math.Float32bits(b[i])
		}
		dst[2*i], dst[2*i+1] = math.Float32frombits(u&0xffff|v<<16), math.Float32frombits(u>>16|v&0xffff0000)
	}
}

// Spread returns the distance of rows of n pairs: whole cache lines, and no multiple of a page, or
// the rows would have few sets of a cache.
func Spread(n int) int {
	const pageFloats = 1024
	n = kernel.Padded(n)
	if n%pageFloats == 0 {
		n += kernel.LineFloats
	}
	return n
}
