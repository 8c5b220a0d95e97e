package data

// FormatError reports a malformed file: damaged, truncated, or of another format than expected.
type FormatError struct {
	Path string // of the file
	Got  string // what was found, and its position
	Want string // what was expected
	Hint string // likely cause and remedy; may be empty
	Err  error  // the cause, or nil
}

func (e *FormatError) Error() string {
	s := "data: " + e.Path + ": " + e.Got + ", want " + e.Want
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// ExitCode returns 2, the exit status for bad input.
func (e *FormatError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }
