package conv

import (
	"fmt"
	"testing"

	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// No operand and no part of the scratch memory is read or written behind its last number.
func TestConvStaysInBounds(t *testing.T) {
	for _, dims := range convDims {
		if dims[1]*dims[2]*dims[3]*dims[4] > 1e5 {
			continue
		}
		for _, k := range directions {
			c := newConvCall(k, dims)
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
			fenced := *c
			fenced.in, fenced.out = nil, [][]float32{kerneltest.Fenced(t, len(c.out[0]))}
			for _, v := range c.in {
				fenced.in = append(fenced.in, kerneltest.Fenced(t, len(v)))
				copy(fenced.in[len(fenced.in)-1], v)
			}
			o := kernel.Args{In: fenced.in, Out: fenced.out, Dims: dims}
			if n := Kernels.Scratch(&c.Call, 1); n > 0 {
				o.Scratch = kerneltest.Fenced(t, n)
			}
			if err := Kernels[k].Run(&o); err != nil {
				t.Fatal(err)
			}
			kerneltest.Compare(t, fmt.Sprint(k, dims), fenced.out[0], c.out[0])
		}
	}
}
