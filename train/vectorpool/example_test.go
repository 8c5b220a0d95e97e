package vectorpool_test

import (
	"fmt"

	"fspda/cpu"
	"fspda/train/algo"
	"fspda/train/vectorpool"
)

// Two agents compute one after the other with one gradient vector.
func Example() {
	dev := cpu.New()
	pool := vectorpool.NewShared(dev, algo.SA{}, 3, 1)
	for agent := range 2 {
		s := pool.NewState(dev.NewVector(3))
		pool.AcquireGradient(s)
		fmt.Println("agent", agent, "computes", s.Gradient().Len(), "derivatives")
		pool.ReleaseGradient(s)
	}
	// Output:
	// agent 0 computes 3 derivatives
	// agent 1 computes 3 derivatives
}
