package cudnn_test

import (
	"fmt"
	"os"

	"fspda/cuda/cudnn"
)

// A convolution is measured once on a machine; later programs read the choice.
func ExampleChoiceCache() {
	dir, err := os.MkdirTemp("", "choices")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 {
		cache := cudnn.ChoiceCache{Dir: dir, GPU: "NVIDIA H100", Version: 90100}
		choice, err := cache.Choose("3×3, 64 channels", func() (cudnn.Choice, error) {
			fmt.Println("measure")
			return cudnn.Choice{Algo: 1, Time: 0.25}, nil
		})
		fmt.Println("algorithm", choice.Algo, err)
	}
	// Output:
	// measure
	// algorithm 1 <nil>
	// algorithm 1 <nil>
}
