package rng_test

import (
	"fmt"

	"fspda/internal/rng"
)

// Both ends of edge (2,5) derive the same numbers for iteration 40, without communication.
func ExampleNew() {
	left := rng.New(1, "mask", 40, 2, 5)
	right := rng.New(1, "mask", 40, 2, 5)
	fmt.Println(left.IntN(1000) == right.IntN(1000))
	// Output: true
}
