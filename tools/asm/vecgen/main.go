package main

import (
	"github.com/mmcloughlin/avo/build"

	"fspda/tools/asm/asmgen"
)

// file is the output of the generator.
var file = asmgen.File{Generator: "fspda/tools/asm/vecgen", Package: "vec", Emit: emit}

func main() { asmgen.Main(file) }

// emit writes all functions.
func emit(c *build.Context) {
	data(c)
	for _, s := range sets {
		e := &emitter{asm: c, set: s}
		for _, write := range []func(*emitter){elementwise, combine, combineAhead, combineStream, sigmoids, swishes,
			gelus, geluGrads, expRows, floatExpRows, scaleRows, slopeRows, layerRows, timesRows, dot,
			rowMaxima, columnSums, gather, selected, differences, combineDiffs, scatter, decodeRows,
			decodePanels, decodeColumns, prefetchRows, bandwidth} {
			write(e)
		}
	}
}
