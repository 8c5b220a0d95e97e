package isa_test

import (
	"fmt"

	"fspda/cpu/isa"
)

// Tests run a kernel with every instruction set of the processor.
func Example() {
	for _, i := range isa.Available() {
		isa.With(i, func() {
			if isa.Active != i {
				fmt.Println("not", i)
			}
		})
	}
	all := isa.Available()
	fmt.Println(all[len(all)-1])
	// Output: go
}
