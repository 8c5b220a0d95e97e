package tile

import "fspda/cpu/isa"

// Set holds the micro-kernels of an instruction set, by height and by width in vectors.
type Set struct {
	Lanes  int  // columns of a vector
	Masked bool // the last vector of a row of B is read only up to its last column
	Tiles  [][2]Func

	peak func(x float32, n int) // does n times peakChains multiply-adds of vectors, between registers

	// RowsOnly says that op(A) is read along its rows: the numbers of a row follow each other.
	RowsOnly bool
	// sums is the definition in Go of the sums of a tile of pairs.
	sums func(depth int, a View, row [PlainRows]int, b View, col [PlainCols]int) [PlainRows][PlainCols]float32

	// narrow writes pairs of neighbours of a, between pairs of a and b, 16 times blocks of them. widen
	// writes the numbers of so many pairs, and interleave pairs of numbers of a and b, which are pairs.
	// A set without pairs has none of them.
	narrow, between, widen, interleave func(dst, a, b *float32, blocks int)

	// narrowStream is narrow with non-temporal stores, which fence completes.
	narrowStream func(dst, a, b *float32, blocks int)
	fence        func()
}

// Kind is the format of the factors of a product.
type Kind uint8

const (
	Numbers Kind = iota // a float32 number
	Pairs               // two bfloat16 numbers, with the sums of the fastest instructions on them
	Dots                // two bfloat16 numbers, see PairSum
)

// Set returns the micro-kernels in use, nil if products are in Go.
func (k Kind) Set() *Set {
	switch k {
	case Pairs:
		return pairSets[isa.Active]
	case Dots:
		return dotSets[isa.Active]
	}
	return Active()
}

// SetOf returns the micro-kernels of an instruction set, nil for Go.
func SetOf(i isa.ISA) *Set { return sets[i] }

// Active returns the micro-kernels in use, nil if products are in Go.
func Active() *Set { return sets[isa.Active] }
