package acceptance_test

import (
	"fmt"

	"fspda/bench/acceptance"
)

// The parts of a run on one GPU begin with the headline.
func ExampleOptions_Parts() {
	o := acceptance.Options{Device: "cuda:0"}
	parts := o.Parts()
	for _, p := range parts[:3] {
		fmt.Println(p.Name, p.Limit)
	}
	// Output:
	// selftest/megakernel 25s
	// figure1/alone 20s
	// selftest/fp32 55s
}
