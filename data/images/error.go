package images

import "fmt"

// FormatError says that a file or folder is not what it should be: damaged, cut off, or another one
// than was asked for.
type FormatError struct {
	Path string // of the file or folder
	Got  string // what was found, and where
	Want string // what was expected
	Hint string // what it probably is and what to do; may be empty
	Err  error  // the cause, where there is one
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

// PictureError says that a picture cannot be used.
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
