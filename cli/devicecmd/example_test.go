package devicecmd_test

import (
	"fmt"

	"fspda/cli/devicecmd"
)

// The commands of this package.
func ExampleCommands() {
	for _, c := range devicecmd.Commands() {
		fmt.Println(c.Name())
	}
	// Output:
	// devices
	// selftest
}
