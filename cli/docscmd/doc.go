// Package docscmd holds the commands that describe the program: docs, man, methods, version, and
// reference, which generates docs/reference.md.
package docscmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDocs(), newMan(), newMethods(), newReference(), newVersion()}
}
