package images

import "fmt"

// FormatError reports a malformed file or folder: damaged, truncated, or of another format than
// expected.
type FormatError struct {
	Path string // of the file or folder
	Got  string // what was found, and its position
	Want string // what was expected
	Hint string // likely cause and remedy; may be empty
	Err  error  // the cause, or nil
}

func (e *FormatError) Error() string {
	s := "images: " + e.Path + ": " + e.Got + ", want " + e.Want
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// ExitCode returns 2, the exit status for bad input.
func (e *FormatError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// PictureError reports an image that cannot be used.
type PictureError struct {
	Path string // of the archive or folder
	Name string // of the picture in it
	Err  error  // the reason
}

func (e *PictureError) Error() string {
	return fmt.Sprintf("images: %s: picture %s: %v", e.Path, e.Name, e.Err)
}

// ExitCode returns 2, the exit status for bad input.
func (e *PictureError) ExitCode() int { return 2 }

// Unwrap returns the reason.
func (e *PictureError) Unwrap() error { return e.Err }
