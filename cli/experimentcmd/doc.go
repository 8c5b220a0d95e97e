// Package experimentcmd holds the commands that run experiments: experiment, whose other names
// figure, sweep, tune, replay and queue read the same files, and theory, compare, table and plot.
//
// An experiment that lists others (a queue) keeps no state besides files. A task is a command line
// of fspda that resumes its runs when it is given again. Its folder holds the runs, and NAME.json
// beside it its [Record]. A queue that starts again, also after kill -9, reads the records and
// gives the commands that are not finished again. A task stops with checkpoints when the pipe to
// its standard input closes, so it does not outlive the queue. It inherits the lock of the queue's
// folder, so a second queue waits until the tasks of the first have stopped.
package experimentcmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package. root makes the command of the program, without
// output, in whose terms the tasks of a list are checked.
func Commands(root func() *cobra.Command) (all []*cobra.Command) {
	for _, s := range spellings {
		all = append(all, s.command(root))
	}
	return append(all, newTheory(), newCompare(), newTable(), newPlot())
}
