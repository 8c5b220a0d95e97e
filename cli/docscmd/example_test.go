package docscmd_test

import (
	"fmt"

	"fspda/cli/docscmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range docscmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// docs
	// man
	// methods
	// version
}
