package experimentcmd_test

import (
	"fmt"

	"fspda/cli/experimentcmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range experimentcmd.Commands(nil) {
		fmt.Println(c.Name())
	}
	// Output:
	// experiment
	// figure
	// sweep
	// tune
	// replay
	// queue
	// theory
	// compare
	// table
	// plot
}
