package figurecmd_test

import (
	"fmt"

	"fspda/cli/figurecmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range figurecmd.Commands(nil) {
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
	// plot
}
