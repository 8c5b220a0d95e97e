package norm_test

import (
	"fmt"

	"fspda/cpu/norm"
	"fspda/device"
)

// The mean of each of two channels over three pixels.
func Example() {
	y := make([]float32, 2)
	err := norm.Kernels.Call(&device.Call{Kernel: device.AvgPool, Dims: []int{1, 3, 2}},
		[][]float32{{1, 10, 2, 20, 6, 60}}, [][]float32{y})
	fmt.Println(y, err)
	// Output: [3 30] <nil>
}
