// Package docscmd holds the commands that describe the program: docs, man, methods and version.
package docscmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDocs(), newMan(), newMethods(), newVersion()}
}
