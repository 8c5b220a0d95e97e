package main

import (
	"github.com/mmcloughlin/avo/build"

	"fspda/cpu/internal/asmgen"
)

// file is what the generator writes.
var file = asmgen.File{Generator: "fspda/cpu/internal/vecgen", Package: "vec", Emit: emit}

func main() { asmgen.Main(file) }

// emit writes all functions.
func emit(c *build.Context) {
	data(c)
	for _, s := range sets {
		e := &emitter{asm: c, set: s}
		for _, write := range []func(*emitter){elementwise, combine, combineStream, sigmoids, expRows, timesRows, dot,
			rowTops, columnSums,
			gather, far, differences, combineDiffs, scatter, decodeRows, decodePanels, decodeColumns, askRows, traffic} {
			write(e)
		}
	}
}
