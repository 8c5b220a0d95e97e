package cli

import (
	"slices"
	"strings"

	"fspda/cli/command"
	"fspda/cli/setup"

	"github.com/spf13/cobra"
)

// newHelp returns the command help, which refuses names of commands and topics that do not exist.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...] [TOPIC]",
		Short: "Help about any command",
		Long:  "Help about a command, or about one topic of its flags. COMMAND --help TOPIC says the same.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err == nil {
				cmd.InitDefaultHelpFlag()
				err = cmd.ParseFlags(rest)
			}
			if err != nil {
				return err
			}
			return cmd.Help()
		},
		ValidArgsFunction: func(help *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, _, err := help.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(command.Names(cmd), setup.Topics(cmd)...), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// refuseTopics makes the help of all commands refuse topics that do not exist. The returned
// function says whether one did, after the command has run: cobra's help has no error.
func refuseTopics(root *cobra.Command) func() error {
	show := root.HelpFunc()
	var wrong error
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if wrong = checkTopic(cmd); wrong == nil {
			show(cmd, args)
		}
	})
	return func() error { return wrong }
}

// checkTopic refuses arguments beside --help that are neither a topic nor an argument of the
// command.
func checkTopic(cmd *cobra.Command) error {
	args, topics := cmd.Flags().Args(), setup.Topics(cmd)
	if len(args) == 0 || len(args) == 1 && slices.Contains(topics, args[0]) {
		return nil
	}
	err := cmd.ValidateArgs(args)
	if err != nil && topics != nil {
		near := command.DidYouMean(args[0], topics, "--help ")
		return command.UsageErrorf("no help topic %q: the topics are %s%s", strings.Join(args, " "),
			strings.Join(topics, ", "), strings.TrimSuffix(near, "; --help lists all"))
	}
	return err
}
