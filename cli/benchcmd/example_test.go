package benchcmd_test

import (
	"fmt"

	"fspda/cli/benchcmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range benchcmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// bench
}
