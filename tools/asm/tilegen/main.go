package main

import (
	"github.com/mmcloughlin/avo/build"

	"fspda/tools/asm/asmgen"
)

// file is the output of the generator.
var file = asmgen.File{Generator: "fspda/tools/asm/tilegen", Package: "tile",
	InTables: []string{"tile", "peak", "narrow", "between", "widen", "interleave", "fence"}, Emit: emit,
	Direct: neonTiles(), Rewrite: asmgen.PairInstructions}

func main() { asmgen.Main(file) }

// emit writes all functions.
func emit(c *build.Context) {
	for _, s := range sets {
		if !s.masked {
			asmgen.Masks(c, maskTable, s.lanes)
		}
		for rows := 1; rows <= s.rows; rows++ {
			for vectors := 1; vectors <= maxVectors; vectors++ {
				tile(c, s, rows, vectors)
			}
		}
		if !s.pairs {
			peak(c, s)
		}
	}
	narrow(c)
	widen(c)
	transpose(c, "AVX2")
	copyPieces(c, "AVX2")
	for rows := 1; rows <= neon.rows; rows++ {
		for vectors := 1; vectors <= maxVectors; vectors++ {
			declare(c, neon, rows, vectors)
		}
	}
	peak(c, neon)
	transpose(c, neon.name)
	copyPieces(c, neon.name)
}
