package attention_test

import (
	"fmt"

	"fspda/cpu/attention"
	"fspda/device"
)

// Two tokens with one head of two numbers. The first token sees itself only; the second has equal
// scores for both.
func ExampleKernels() {
	qkv := []float32{
		0, 0, 0, 0, 1, 2, // query, key and value of the first token
		0, 0, 5, 5, 3, 4,
	}
	y, lse := make([]float32, 4), make([]float32, 2)
	call := &device.Call{Kernel: device.Attention, Dims: []int{1, 2, 1, 2}}
	err := attention.Kernels.Call(call, [][]float32{qkv}, [][]float32{y, lse})
	fmt.Println(y, lse, err)
	// Output: [1 2 2 3] [0 0.6931472] <nil>
}
