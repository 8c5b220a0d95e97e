package command

import (
	"errors"
	"fmt"
	"fspda/train"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExitFailed and the others are the exit statuses.
const (
	ExitFailed   = 1
	ExitBadInput = 2
	ExitDiverged = 3
	ExitStopped  = 130
)

// usageError reports a command line that makes no sense.
type usageError struct{ msg string }

// UsageErrorf returns an error about the command line, whose exit status is 2.
func UsageErrorf(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func (e *usageError) Error() string { return e.msg }

// ExitCode returns 2, the exit status for bad input.
func (e *usageError) ExitCode() int { return ExitBadInput }

// stoppedError reports a command that ended in order because it was told to stop.
type stoppedError struct{}

func (stoppedError) Error() string { return "stopped" }

// ExitCode returns 130, the status of a shell's command that was interrupted.
func (stoppedError) ExitCode() int { return ExitStopped }

var ErrStopped error = stoppedError{}

// exitCoder is an error that knows the exit status of the command it ends.
type exitCoder interface{ ExitCode() int }

// ExitStatus returns the exit status of an error: its own, or 1.
func ExitStatus(err error) int {
	var coder exitCoder
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coder):
		return coder.ExitCode()
	}
	return ExitFailed
}

// FlagError adds the nearest flag that exists to a complaint about one that does not.
func FlagError(cmd *cobra.Command, err error) error {
	msg := err.Error()
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		msg += DidYouMean(name, names, "--")
	}
	return &usageError{msg}
}

func DidYouMean(wrong string, names []string, prefix string) string {
	if near := train.Nearest(wrong, names); near != "" {
		return fmt.Sprintf("; did you mean %s%s?", prefix, near)
	}
	return "; --help lists what there is"
}

func CommandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}
