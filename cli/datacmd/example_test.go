package datacmd_test

import (
	"fmt"

	"fspda/cli/datacmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range datacmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// data
}
