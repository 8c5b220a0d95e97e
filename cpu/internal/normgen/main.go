package main

import (
	"github.com/mmcloughlin/avo/build"

	"fspda/cpu/internal/asmgen"
)

// file is the output of the generator.
var file = asmgen.File{Generator: "fspda/cpu/internal/normgen", Package: "norm", Emit: emit}

func main() { asmgen.Main(file) }

// emit writes all functions.
func emit(c *build.Context) {
	for _, s := range sets {
		if !s.masked {
			masks(c, s.lanes)
		}
		moments(c, s)
		sums(c, s)
		fold(c, s)
		for _, v := range affines {
			affine(c, s, v)
		}
		gradSum(c, s)
		for _, v := range reluSums {
			reluSum(c, s, v)
		}
		for _, v := range gradients {
			gradient(c, s, v)
		}
		maxPool(c, s)
		maxPoolGrad(c, s, "maxPoolGrad", false)
		maxPoolGrad(c, s, "maxPoolGradStream", true)
	}
	fence(c)
}
