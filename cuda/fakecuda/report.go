package fakecuda

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Report is what the libraries have to say of a program that used them.
type Report struct {
	Wrong []string       // what should not have been done
	Leaks []string       // what was not given back when a context ended
	Kept  []string       // descriptors on the host that a library had when it was closed
	Calls map[string]int // how often functions were called before the last context ended; empty where none ended
}

// ReadReport reads what libraries wrote, which is nothing where no file is.
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
			r.Wrong = append(r.Wrong, what)
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
