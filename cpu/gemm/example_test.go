package gemm_test

import (
	"fmt"

	"fspda/cpu/gemm"
)

// C = A·Bᵀ for a 1×2 matrix A and a 3×2 matrix B.
func ExampleMultiply() {
	c := make([]float32, 3)
	gemm.Multiply(false, true, 1, 3, 2, 1, []float32{1, 10}, 2, []float32{1, 2, 3, 4, 5, 6}, 2, 0, c, 3)
	fmt.Println(c)
	// Output: [21 43 65]
}
