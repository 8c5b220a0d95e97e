// Package runscmd holds the commands about run folders: runs lists and deletes them, web serves
// them.
package runscmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command { return []*cobra.Command{newRuns(), newWeb()} }
