// Package modelcmd holds the commands that use a trained model of a run: export.
package modelcmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newExport()}
}
