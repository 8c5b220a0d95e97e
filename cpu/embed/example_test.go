package embed_test

import (
	"fmt"

	"fspda/cpu/embed"
	"fspda/device"
)

// The rows of tokens 1 and 0, and the gradient of both rows.
func ExampleKernels() {
	ids, tokens, y := []float32{1, 0, 1}, []float32{1, 2, 3, 4}, make([]float32, 6)
	call := &device.Call{Kernel: device.TokenEmbed, Dims: []int{3, 2, 2}}
	fmt.Println(embed.Kernels.Call(call, [][]float32{ids, tokens}, [][]float32{y}), y)
	grad := make([]float32, 4)
	call.Kernel = device.TokenEmbedGrad
	fmt.Println(embed.Kernels.Call(call, [][]float32{ids, y}, [][]float32{grad}), grad)
	// Output:
	// <nil> [3 4 1 2 3 4]
	// <nil> [1 2 6 8]
}
