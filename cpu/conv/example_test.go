package conv_test

import (
	"fmt"

	"fspda/cpu/conv"
	"fspda/device"
)

// A 1×2 filter over one row of three pixels with one channel.
func Example() {
	y := make([]float32, 2)
	dims := []int{1, 1, 3, 1, 1, 1, 2, 1, 0} // n h w c k r s stride pad
	err := conv.Kernels.Call(&device.Call{Kernel: device.Conv, Dims: dims}, [][]float32{{1, 2, 3}, {10, 1}},
		[][]float32{y})
	fmt.Println(y, err)
	// Output: [12 23] <nil>
}
