package tile

import "fspda/cpu/isa"

// Set holds the micro-kernels of an instruction set, by height and by width in vectors.
type Set struct {
	Lanes  int  // columns of a vector
	Masked bool // the last vector of a row of B is read only up to its last column
	Tiles  [][2]Func

	peak func(x float32, n int) // does n times peakChains multiply-adds of vectors, between registers
}

// SetOf returns the micro-kernels of an instruction set, nil for Go.
func SetOf(i isa.ISA) *Set { return sets[i] }

// Active returns the micro-kernels in use, nil if products are in Go.
func Active() *Set { return sets[isa.Active] }
