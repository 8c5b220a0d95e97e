// Package modelcmd holds the commands that use a trained model: export, eval, predict
// and sample.
package modelcmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newExport(), newEval(), newPredict(), newSample()}
}
