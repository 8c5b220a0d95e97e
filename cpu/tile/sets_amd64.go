//go:build !noasm && !fspda_noasm

package tile

import "fspda/cpu/isa"

// Set holds the micro-kernels of an instruction set, by height and by width in vectors.
type Set struct {
	Lanes  int  // columns of a vector
	Masked bool // the last vector of a row of B is read only up to its last column
	Tiles  [][2]Func
}

var avx512 = Set{16, true, [][2]Func{
	{tile1x16AVX512, tile1x32AVX512},
	{tile2x16AVX512, tile2x32AVX512},
	{tile3x16AVX512, tile3x32AVX512},
	{tile4x16AVX512, tile4x32AVX512},
	{tile5x16AVX512, tile5x32AVX512},
	{tile6x16AVX512, tile6x32AVX512},
	{tile7x16AVX512, tile7x32AVX512},
	{tile8x16AVX512, tile8x32AVX512},
	{tile9x16AVX512, tile9x32AVX512},
	{tile10x16AVX512, tile10x32AVX512},
	{tile11x16AVX512, tile11x32AVX512},
	{tile12x16AVX512, tile12x32AVX512},
	{tile13x16AVX512, tile13x32AVX512},
	{tile14x16AVX512, tile14x32AVX512},
}}

var avx2 = Set{8, false, [][2]Func{
	{tile1x8AVX2, tile1x16AVX2},
	{tile2x8AVX2, tile2x16AVX2},
	{tile3x8AVX2, tile3x16AVX2},
	{tile4x8AVX2, tile4x16AVX2},
	{tile5x8AVX2, tile5x16AVX2},
	{tile6x8AVX2, tile6x16AVX2},
}}

// SetOf returns the micro-kernels of an instruction set, nil for Go.
func SetOf(i isa.ISA) *Set { return sets[i] }

var sets = [isa.Count]*Set{isa.AVX2: &avx2, isa.AVX512: &avx512}

// Active returns the micro-kernels in use, nil if products are in Go.
func Active() *Set { return sets[isa.Active] }
