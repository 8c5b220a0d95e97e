package main

import (
	"github.com/mmcloughlin/avo/build"

	"fspda/tools/asm/asmgen"
)

// file is the output of the generator.
var file = asmgen.File{Generator: "fspda/tools/asm/tilegen", Package: "tile",
	InTables: []string{"tile", "peak"}, Emit: emit}

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
		peak(c, s)
	}
	transpose(c)
	copyPieces(c)
}
