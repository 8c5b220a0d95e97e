package turbojpeg

import (
	"errors"
	"fmt"
	"sync"
)

// ErrNotFound says that the machine has no libjpeg-turbo that can be used.
var ErrNotFound = errors.New("turbojpeg: libjpeg-turbo is not there")

// Open finds the library, once for the program. An error is [ErrNotFound] and says what was tried.
var Open = sync.OnceValues(open)

// Gray, RGB and YCbCr pictures are decoded here; others, such as CMYK, are left to others.
const (
	colourRGB   = 0
	colourYCbCr = 1
	colourGray  = 2
)

// Header is what a JPEG file says of its picture.
type Header struct {
	W, H   int
	colour int
}

// Supported tells whether Decode can make red, green and blue of the picture.
func (h Header) Supported() bool {
	return h.colour == colourRGB || h.colour == colourYCbCr || h.colour == colourGray
}

// Reduced is the size of the picture at 1/f, rounded up.
func (h Header) Reduced(f int) (w, hh int) { return (h.W + f - 1) / f, (h.H + f - 1) / f }

// Reductions lists the fractions at which decoding is fast: 1/8, 1/4, 1/2 and 1.
var Reductions = []int{8, 4, 2, 1}

func notFound(tried []string) error {
	return fmt.Errorf("%w: tried %v: install the package libturbojpeg0 (Debian), turbojpeg (Fedora) or jpeg-turbo (Homebrew)", ErrNotFound, tried)
}
