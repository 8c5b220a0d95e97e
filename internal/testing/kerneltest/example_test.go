package kerneltest_test

import (
	"fmt"

	"fspda/internal/testing/kerneltest"
)

// The same name gives the same numbers.
func ExampleNoise() {
	fmt.Println(kerneltest.Same(kerneltest.Noise("x", 3)[2], kerneltest.Noise("x", 3)[2]))
	// Output: true
}
