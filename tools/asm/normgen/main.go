package main

import (
	"github.com/mmcloughlin/avo/build"

	"fspda/tools/asm/asmgen"
)

// file is the output of the generator.
var file = asmgen.File{Generator: "fspda/tools/asm/normgen", Package: "norm",
	InTables: []string{"half"}, Emit: emit, Rewrite: asmgen.PairInstructions}

func main() { asmgen.Main(file) }

// emit writes all functions.
func emit(c *build.Context) {
	asmgen.Masks(c, maskTable, sets[1].lanes)
	for _, s := range append(sets[:len(sets):len(sets)], halves) {
		centredSums(c, s, false)
		if !s.half {
			sums(c, s)
			fold(c, s)
		}
		for _, stream := range []bool{false, true} {
			affine(c, s, false, false, stream)
			affine(c, s, false, true, stream)
			affine(c, s, true, true, stream)
		}
		centredSums(c, s, true)
		reluSum(c, s, false, false)
		reluSum(c, s, true, false)
		reluSum(c, s, true, true)
		for _, stream := range []bool{false, true} {
			gradient(c, s, false, stream)
			gradient(c, s, true, stream)
		}
		if !s.half {
			maxPool(c, s)
			maxPoolGrad(c, s, false)
			maxPoolGrad(c, s, true)
		}
	}
	fence(c, "AVX2")
	fence(c, "NEON")
}
