package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/train"
)

// Exit statuses.
const (
	exitFailed   = 1
	exitBadInput = 2
	exitDiverged = 3
	exitStopped  = 130
)

// Main runs the command with the arguments of the process, and ends the process.
func Main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program: arguments in, exit status out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(append([]string{}, args...)) // not nil, for which it would take those of the process
	err := root.ExecuteContext(ctx)
	status := exitStatus(err)
	if err != nil && status != exitStopped {
		fmt.Fprintf(stderr, "fspda: %s\n", indent(err.Error()))
	}
	return status
}

// indent keeps further lines of an error below its first.
func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n       ") }

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "fspda",
		Short:         "Decentralized training over random networks: one binary, one command, same seed same curve",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return &usageError{fmt.Sprintf("unknown command %q%s", args[0], didYouMean(args[0], commandNames(cmd), ""))}
		},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newTrain(), newUp(), newAgent(), newCerts(), newExport(), newFigure(), newSweep(), newCompare(),
		newPlot(), newRuns(), newWeb(), newData(), newDocs(), newMan(), newReference(), newBench(), newDevices(), newSelftest())
	return root
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// usageError is a command line that makes no sense.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// ExitCode returns 2, the exit status for bad input.
func (e *usageError) ExitCode() int { return exitBadInput }

// flagError adds the nearest flag that exists to a complaint about one that does not.
func flagError(cmd *cobra.Command, err error) error {
	msg := err.Error()
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		msg += didYouMean(name, names, "--")
	}
	return &usageError{msg}
}

func didYouMean(wrong string, names []string, prefix string) string {
	if near := train.Nearest(wrong, names); near != "" {
		return fmt.Sprintf("; did you mean %s%s?", prefix, near)
	}
	return "; --help lists what there is"
}

// stoppedError reports a command that ended in order because it was told to stop.
type stoppedError struct{}

func (stoppedError) Error() string { return "stopped" }

// ExitCode returns 130, the status of a shell's command that was interrupted.
func (stoppedError) ExitCode() int { return exitStopped }

var errStopped error = stoppedError{}

// exitCoder is an error that knows the exit status of the command it ends.
type exitCoder interface{ ExitCode() int }

// exitStatus returns the exit status of an error: its own, or 1.
func exitStatus(err error) int {
	var coder exitCoder
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coder):
		return coder.ExitCode()
	}
	return exitFailed
}
