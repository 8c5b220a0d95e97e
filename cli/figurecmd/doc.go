// Package figurecmd holds the commands that train several configurations or draw several runs:
// figure, sweep, tune, theory, replay, compare and plot.
package figurecmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newFigure(), newSweep(), newTune(), newTheory(), newReplay(), newCompare(), newPlot()}
}
