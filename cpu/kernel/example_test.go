package kernel_test

import (
	"fmt"

	"fspda/cpu/kernel"
	"fspda/device"
)

// A kernel that computes parts of its output on any number of workers.
func scale(a *kernel.Args) error {
	a.ParallelRange(len(a.Out[0]), func(a *kernel.Args, part, of int) {
		from, to := kernel.SplitUnits(part, of, len(a.Out[0]), kernel.LineFloats)
		for i := from; i < to; i++ {
			a.Out[0][i] = float32(a.Attr) * a.In[0][i]
		}
	})
	return nil
}

func ExampleTable() {
	kernels := kernel.Table{device.Scale: {Run: scale}}
	y := make([]float32, 3)
	err := kernels.Call(&device.Call{Kernel: device.Scale, Dims: []int{3}, Attr: 10}, [][]float32{{1, 2, 3}},
		[][]float32{y})
	fmt.Println(y, err)
	// Output: [10 20 30] <nil>
}
