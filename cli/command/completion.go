package command

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

// CompleteRuns makes the shell complete the arguments of cmd with the run folders in runs/, and with
// files where there are none.
func CompleteRuns(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		configs, _ := filepath.Glob(filepath.Join(RunsDir, "*", "config.yaml")) // the pattern is well formed
		deeper, _ := filepath.Glob(filepath.Join(RunsDir, "*", "*", "config.yaml"))
		var runs []string
		for _, c := range append(configs, deeper...) {
			runs = append(runs, filepath.Dir(c))
		}
		return runs, cobra.ShellCompDirectiveDefault
	}
	return cmd
}
