package docscmd

import (
	"io"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/train/config"
)

func newMethods() *cobra.Command {
	return &cobra.Command{
		Use:   "methods",
		Short: "Print the table of the methods that --algo names",
		Long: `Print the table of the methods that --algo names, with what each one sends, needs and reads, as
fspda train --algo help does.`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), config.MethodHelp())
			return err
		},
	}
}
