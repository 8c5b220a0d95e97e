package kernels_test

import (
	"fmt"

	"fspda/cuda/kernels"
)

// A Call names a kernel and holds its launch geometry and its arguments, one slot per parameter.
func Example() {
	const dst, src, idx = 0x1000, 0x2000, 0x3000 // device addresses
	c := kernels.Gather(dst, src, idx, 1000)
	fmt.Println(c.Kernel.Name, c.Kernel.Unit, c.Grid, c.Block)
	fmt.Printf("%#x\n", c.Args)
	// Output:
	// gather vector.cu [8 1 1] [128 1 1]
	// [0x1000 0x2000 0x3000 0x3e8]
}
