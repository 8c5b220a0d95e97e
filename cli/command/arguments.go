package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NoArgs refuses arguments.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageErrorf("unexpected argument %q: this command takes flags only", args[0])
	}
	return nil
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
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
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
