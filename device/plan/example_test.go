package plan_test

import (
	"fmt"

	"fspda/device/plan"
)

// The third value takes the memory of the first, which nothing reads after step 1.
func ExamplePack() {
	a, b, c := &plan.Block{Size: 100}, &plan.Block{Size: 50}, &plan.Block{Size: 80}
	a.Use(0) // step 0 writes a
	a.Use(1) // step 1 reads a and writes b
	b.Use(1)
	b.Use(2) // step 2 reads b and writes c
	c.Use(2)
	size := plan.Pack([]*plan.Block{a, b, c}, 16)
	fmt.Println(a.Off, b.Off, c.Off, size)
	// Output: 0 112 0 176
}
