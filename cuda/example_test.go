package cuda_test

import (
	"fmt"

	"fspda/cuda"
)

// A device name may list several GPUs; without numbers it stands for all of them.
func ExampleParseNames() {
	for _, name := range []string{"cuda:1", "cuda:0,2", "cuda", "gpu:0"} {
		indices, err := cuda.ParseNames(name)
		fmt.Println(indices, err)
	}
	// Output:
	// [1] <nil>
	// [0 2] <nil>
	// [] <nil>
	// [] cuda: device "gpu:0": want cuda, cuda:N with N from 0 on, or several as in cuda:0,1
}
