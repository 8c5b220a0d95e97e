package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fspda/train"
)

// RunsDir is the default folder of runs.
const RunsDir = "runs"

// NextFreeName returns the first of DIR/BASE-1, DIR/BASE-2, ... that does not exist. A name that
// cannot be checked counts as free; opening it reports the reason.
func NextFreeName(dir, base string) string {
	for i := 1; ; i++ {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d", base, i))
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

// MakeFolder creates a folder for results and its parents.
func MakeFolder(path string) error {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return &train.FolderError{Path: path, Got: "cannot be created", Err: err}
	}
	return nil
}

// WriteFile writes a text file of results.
func WriteFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return &train.FolderError{Path: filepath.Dir(path), Got: filepath.Base(path) + " cannot be written", Err: err}
	}
	return nil
}
