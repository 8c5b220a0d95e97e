package data

// FormatError says that a file is not what it should be: damaged, cut off, or another file than was
// asked for.
type FormatError struct {
	Path string // of the file
	Got  string // what was found, and where
	Want string // what was expected
	Hint string // what it probably is and what to do; may be empty
	Err  error  // the cause, where there is one
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
