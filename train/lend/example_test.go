package lend_test

import (
	"fmt"

	"fspda/cpu"
	"fspda/train/lend"
)

// Two agents compute with one vector for gradients.
func Example() {
	dev := cpu.New()
	var w lend.Turns
	w.Give(dev.NewVector(3))
	for agent := range 2 {
		g := w.Take()
		fmt.Println("agent", agent, "computes", g.Len(), "derivatives")
		w.Give(g)
	}
	// Output:
	// agent 0 computes 3 derivatives
	// agent 1 computes 3 derivatives
}
