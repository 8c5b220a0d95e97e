package cudnn_test

import (
	"errors"
	"fmt"
	"os"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// A candidate that loses the GPU in its first run is not run by later programs.
func ExampleChoiceCache() {
	dir, err := os.MkdirTemp("", "choices")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 {
		cache := cudnn.ChoiceCache{Dir: dir, GPU: "NVIDIA H100", Version: 90100}
		err := cache.Attempt("engine 62 of 3×3, 64 channels", func() error {
			fmt.Println("run")
			return &driver.Error{Result: driver.LaunchFailed}
		})
		fmt.Println(driver.Lost(err), errors.Is(err, cudnn.ErrNoReturn))
	}
	// Output:
	// run
	// true false
	// false true
}
