package format

// Error reports a malformed file or folder: damaged, truncated, or of another format than expected.
type Error struct {
	Path string // path of the file or folder
	Got  string // the content found, and its position
	Want string // the expected content
	Hint string // likely cause and remedy; may be empty
	Err  error  // the cause, or nil; the message does not repeat it
}

func (e *Error) Error() string {
	s := "data: " + e.Path + ": " + e.Got + ", want " + e.Want
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// ExitCode returns 2, the exit status for bad input.
func (e *Error) ExitCode() int { return 2 }

func (e *Error) Unwrap() error { return e.Err }
