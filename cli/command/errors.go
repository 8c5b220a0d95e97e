package command

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"fspda/internal/wholefile"
	"fspda/train/config"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit statuses of the program.
const (
	ExitFailed   = 1   // something failed
	ExitBadInput = 2   // the user has to change something: arguments, files, folders
	ExitDiverged = 3   // the run diverged
	ExitDiskFull = 4   // a disk is full: the files on it are complete, and the command can be tried again
	ExitStopped  = 130 // stopped by a signal or the stop button
)

// usageError reports an invalid command line.
type usageError struct{ msg string }

// UsageErrorf returns an error about the command line, whose exit status is 2.
func UsageErrorf(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func (e *usageError) Error() string { return e.msg }

// ExitCode returns 2, the exit status for bad input.
func (e *usageError) ExitCode() int { return ExitBadInput }

// stoppedError reports a command that was asked to stop and did so in order.
type stoppedError struct{}

func (stoppedError) Error() string { return "stopped" }

// ExitCode returns 130, which shells use for an interrupted command.
func (stoppedError) ExitCode() int { return ExitStopped }

// ErrStopped is returned by a command that was asked to stop and did so in order.
var ErrStopped error = stoppedError{}

// exitCoder is an error with an exit status. exec.ExitError is one too.
type exitCoder interface{ ExitCode() int }

// ExitStatus returns the exit status of an error: ExitDiskFull for a full disk, else the error's
// own status, else ExitBadInput for a file that does not exist, or 1.
func ExitStatus(err error) int {
	var coder exitCoder
	switch {
	case err == nil:
		return 0
	case wholefile.DiskFull(err):
		return ExitDiskFull
	case errors.As(err, &coder):
		return coder.ExitCode()
	case errors.Is(err, fs.ErrNotExist):
		return ExitBadInput
	}
	return ExitFailed
}

// FlagError suggests the most similar flag where a flag is unknown, and names the values that a
// flag takes where its value is wrong.
func FlagError(cmd *cobra.Command, err error) error {
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := value.GetFlag()
		return UsageErrorf("--%s %s: %s", f.Name, value.GetValue(), wants(f, value.GetValue(), value.Unwrap()))
	}
	msg := err.Error()
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		msg += DidYouMean(name, names, "--")
	}
	return &usageError{msg}
}

// wants says which values a flag takes. cause is the error that its type gave for the wrong value.
func wants(f *pflag.Flag, given string, cause error) string {
	switch {
	case errors.Is(cause, strconv.ErrRange):
		return "expected a smaller number"
	case f.Name == "help":
		return "write --help all"
	}
	if share, ok := strings.CutSuffix(given, "%"); ok {
		if v, err := strconv.ParseFloat(share, 64); err == nil && strings.HasPrefix(f.Value.Type(), "float64") {
			return fmt.Sprintf("expected a number: write %g", v/100)
		}
	}
	switch f.Value.Type() {
	case "int":
		if v, err := strconv.ParseFloat(given, 64); err == nil && v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return fmt.Sprintf("expected a whole number: write %.0f", v)
		}
		return "expected a whole number"
	case "uint64":
		return "expected a whole number of at least 0"
	case "float64", "float64Slice":
		return "expected a number"
	case "bool":
		return "expected true or false"
	case "duration":
		return "expected a duration, such as 30s, 5m or 168h"
	}
	return cause.Error()
}

// DidYouMean returns the end of an error message about a misspelled name: the most similar of
// names.
func DidYouMean(wrong string, names []string, prefix string) string {
	if near := config.Nearest(wrong, names); near != "" {
		return fmt.Sprintf("; did you mean %s%s?", prefix, near)
	}
	return "; --help lists all"
}

// Names returns the names of the commands below cmd.
func Names(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}
