package command

import "github.com/spf13/cobra"

// NoArgs refuses arguments.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageErrorf("unexpected argument %q: this command takes flags only", args[0])
	}
	return nil
}

// OneArgument refuses any other number of arguments.
func OneArgument(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return UsageErrorf("expected %s, found %d arguments", what, len(args))
		}
		return nil
	}
}

// Group returns a command that only holds other commands.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return UsageErrorf("unknown command %q%s", use+" "+args[0], DidYouMean(args[0], Names(cmd), ""))
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}
