package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		if _, err := strconv.ParseBool(args[0]); err == nil {
			if flags := boolFlags(cmd, "="+args[0]); flags != nil { // set, with their values left as arguments
				return UsageErrorf("unexpected argument %q: a flag that is true or false takes its value after an "+
					"equals sign: write %s", args[0], strings.Join(flags, " or "))
			}
		}
		return UsageErrorf("unexpected argument %q: this command takes flags only", args[0])
	}
	return nil
}

// boolFlags lists the flags that were given and are true or false, each with a value after it.
func boolFlags(cmd *cobra.Command, value string) (flags []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			flags = append(flags, "--"+f.Name+value)
		}
	})
	return flags
}

// OnlyFlags refuses flags that were given and are not among the effective ones. Its error names the
// command on which they have no effect, such as theory list.
func OnlyFlags(fs *pflag.FlagSet, what string, effective ...string) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(effective, f.Name) {
			err = UsageErrorf("--%s has no effect on %s: leave it out", f.Name, what)
		}
	})
	return err
}

// Arguments refuses fewer arguments than least and more than most.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return UsageErrorf("expected %s, found %d arguments", what, len(args))
		}
		return nil
	}
}

// Group returns a command that only holds other commands.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.AddCommand(commands...)
	OnlyHolds(cmd)
	return cmd
}

// OnlyHolds makes cmd, which only holds other commands, print its help, and refuse the names of
// commands that do not exist.
func OnlyHolds(cmd *cobra.Command) {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		path := strings.TrimPrefix(cmd.CommandPath()+" "+args[0], cmd.Root().Name()+" ")
		return UsageErrorf("unknown command %q%s", path, DidYouMean(args[0], Names(cmd), ""))
	}
}

// Report makes cmd print the report that measure returns, as text, or with --json as JSON.
func Report(cmd *cobra.Command, measure func(ctx context.Context) (fmt.Stringer, error)) *cobra.Command {
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := measure(cmd.Context())
		switch {
		case err != nil:
			return err
		case *asJSON:
			return PrintJSON(cmd.OutOrStdout(), r)
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), r)
		return err
	}
	return cmd
}

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
