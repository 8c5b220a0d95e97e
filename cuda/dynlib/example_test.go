package dynlib_test

import (
	"fmt"

	"fspda/cuda/dynlib"
)

// A driver of CUDA 13 works with libraries of CUDA 13 and 12, but a V100 (7.0) needs CUDA 12.
func ExampleMajors() {
	fmt.Println(dynlib.Majors(13000, 90), dynlib.Majors(13000, 70))
	// Output: [13 12] [12]
}
