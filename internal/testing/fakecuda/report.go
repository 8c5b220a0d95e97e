package fakecuda

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Report holds the libraries' observations of a program.
type Report struct {
	Misuses []string       // misuses of the interface
	Leaks   []string       // objects not freed when a context ended
	Kept    []string       // descriptors alive on the host when a library was closed
	Calls   map[string]int // calls per function until the last context ended; empty if none ended
}

// ReadReport reads a report file. A missing file is an empty report.
func ReadReport(file string) (Report, error) {
	r := Report{Calls: map[string]int{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("fakecuda: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		kind, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch kind {
		case "wrong":
			r.Misuses = append(r.Misuses, what)
		case "leak":
			r.Leaks = append(r.Leaks, what)
		case "kept":
			r.Kept = append(r.Kept, what)
		case "calls":
			var name string
			var n int
			if _, err := fmt.Sscan(what, &name, &n); err != nil {
				return r, fmt.Errorf("fakecuda: report %s has the line %q: %w", file, line, err)
			}
			r.Calls[name] = n
		default:
			return r, fmt.Errorf("fakecuda: report %s has the line %q", file, line)
		}
	}
	return r, nil
}
