package turbojpeg

import (
	"errors"
	"fmt"
	"sync"
)

// ErrNotFound reports that no usable libjpeg-turbo is installed.
var ErrNotFound = errors.New("turbojpeg: libjpeg-turbo is not there")

// Open loads the library, once per process. An error wraps [ErrNotFound] and lists what was tried.
var Open = sync.OnceValues(open)

// Supported colour spaces are grey, RGB and YCbCr; CMYK and others are not.
const (
	colourRGB   = 0
	colourYCbCr = 1
	colourGray  = 2
)

// Header is the header of a JPEG file.
type Header struct {
	W, H   int
	colour int
}

// Supported reports whether Decode can convert the image to RGB.
func (h Header) Supported() bool {
	return h.colour == colourRGB || h.colour == colourYCbCr || h.colour == colourGray
}

// Reduced returns the size of the image at 1/f, rounded up.
func (h Header) Reduced(f int) (w, hh int) { return (h.W + f - 1) / f, (h.H + f - 1) / f }

// Reductions lists the fast reduction factors: 1/8, 1/4, 1/2 and 1.
var Reductions = []int{8, 4, 2, 1}

func notFound(tried []string) error {
	return fmt.Errorf("%w: tried %v: install the package libturbojpeg0 (Debian), turbojpeg (Fedora) or jpeg-turbo "+
		"(Homebrew)", ErrNotFound, tried)
}
