package algotest_test

import (
	"fmt"

	"fspda/cpu"
	"fspda/train/algo/algotest"
)

// A device is correct if it computes the known models.
func Example() {
	wrong := 0
	for _, c := range algotest.Goldens() {
		if off, err := c.Error(cpu.New()); err != nil || off > algotest.Float32Bound {
			wrong++
		}
	}
	fmt.Println(wrong, "algorithms are wrong")
	// Output: 0 algorithms are wrong
}
