package modelcmd_test

import (
	"fmt"

	"fspda/cli/modelcmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range modelcmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// export
	// eval
	// predict
	// sample
}
