package runscmd_test

import (
	"fmt"

	"fspda/cli/runscmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range runscmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// runs
	// web
}
