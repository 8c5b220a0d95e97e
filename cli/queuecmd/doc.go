// Package queuecmd holds the command queue: it runs commands that take long, by priority, on idle
// cores, each in a process of its own.
//
// The queue keeps no state besides files. A task is a command line of fspda that resumes its runs
// when it is given again, such as figure, sweep or train. Its folder holds the runs, and NAME.json
// beside it the [Record] of what became of it. A queue that starts again, also after kill -9, reads
// the records and gives the commands that are not finished again.
//
// A task stops with checkpoints when the pipe to its standard input closes, so it does not outlive
// the queue. It inherits the lock of the queue's folder, so a second queue waits until the tasks of
// the first have stopped.
package queuecmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package. root makes the command of the program, without
// output, in whose terms the tasks are checked.
func Commands(root func() *cobra.Command) []*cobra.Command { return []*cobra.Command{newQueue(root)} }
