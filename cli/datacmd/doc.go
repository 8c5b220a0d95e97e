// Package datacmd holds the command data, which fetches, inspects, packs and verifies data sets.
package datacmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command { return []*cobra.Command{newData()} }
