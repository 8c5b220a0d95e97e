package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fspda/internal/wholefile"
)

// RunsDir is the default folder of runs.
const RunsDir = "runs"

// NextFreeName returns the first of runs/BASE-1, runs/BASE-2, ... that does not exist. A name that
// cannot be checked counts as free; opening it reports the reason.
func NextFreeName(base string) string {
	for i := 1; ; i++ {
		path := filepath.Join(RunsDir, fmt.Sprintf("%s-%d", base, i))
		if _, err := os.Lstat(path); err != nil {
			return path
		}
	}
}

// PrintJSON writes v as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// MakeFolder creates a folder for results and its parents, and makes sure that it can be written
// to.
func MakeFolder(path string) error {
	err := os.MkdirAll(path, 0o777)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(path, ".new-"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	return CannotWrite(path, "name a folder that can be made and written to", err)
}

// writeError reports a file or folder that cannot be written.
type writeError struct {
	path, hint string
	err        error
}

func (e *writeError) Error() string {
	return fmt.Sprintf("%s cannot be written: %v: %s", e.path, e.err, e.hint)
}

func (e *writeError) Unwrap() error { return e.err }

// ExitCode returns 2, the exit status for bad input.
func (e *writeError) ExitCode() int { return ExitBadInput }

// CannotWrite adds the path and a hint to an error of the file system. Other errors stay as they
// are.
func CannotWrite(path, hint string, err error) error {
	if !errors.As(err, new(*fs.PathError)) && !errors.As(err, new(*os.LinkError)) {
		return err
	}
	return &writeError{path, cmp.Or(wholefile.LimitHint(err), hint), err}
}

// WriteFile writes a text file of results. A file that is there stays whole if that fails.
func WriteFile(path, text string) error {
	return CannotWrite(path, "make room and give the folder to your user, or choose another one",
		wholefile.Publish(path, []byte(text)))
}
