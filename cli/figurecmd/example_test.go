package figurecmd_test

import (
	"fmt"

	"fspda/cli/figurecmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range figurecmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// figure
	// sweep
	// tune
	// theory
	// replay
	// compare
	// plot
}
