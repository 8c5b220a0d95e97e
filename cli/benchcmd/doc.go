// Package benchcmd holds the command bench, which measures this machine and this program. The
// measurements are in fspda/bench/measure; the commands bind flags to them and print their reports.
package benchcmd

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command { return []*cobra.Command{newBench()} }
