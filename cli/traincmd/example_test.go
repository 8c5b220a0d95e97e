package traincmd_test

import (
	"fmt"

	"fspda/cli/traincmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range traincmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// train
	// up
	// agent
	// agents
	// certs
}
