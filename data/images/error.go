package images

import (
	"errors"
	"fmt"

	"fspda/data/format"
)

// FormatError reports a malformed file or folder.
type FormatError = format.Error

// ErrNoPictures is the reason of a [FormatError] of a path that has no picture at all.
var ErrNoPictures = errors.New("no picture")

// PictureError reports an image that cannot be used.
type PictureError struct {
	Path string // path of the archive or folder
	Name string // name of the picture in it
	Err  error  // the reason
}

func (e *PictureError) Error() string {
	return fmt.Sprintf("images: %s: picture %s: %v", e.Path, e.Name, e.Err)
}

// ExitCode returns 2, the exit status for bad input.
func (e *PictureError) ExitCode() int { return 2 }

func (e *PictureError) Unwrap() error { return e.Err }
