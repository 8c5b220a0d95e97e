package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fspda/data/images"
	"fspda/data/turbojpeg"
)

// Decoder names a JPEG decoder. Decoders differ in the last bits of a pixel, so the decoder is part
// of the [Set.Fingerprint].
type Decoder string

const (
	AutoDecoder Decoder = "auto"  // Turbo if installed, else GoJPEG
	GoJPEG      Decoder = "go"    // image/jpeg
	Turbo       Decoder = "turbo" // libjpeg-turbo, twice as fast
)

// Decoders lists the names.
func Decoders() []string { return []string{string(AutoDecoder), string(GoJPEG), string(Turbo)} }

// resolve returns the decoder to use; library is nil if libjpeg-turbo is installed.
func (d Decoder) resolve(library error) (Decoder, error) {
	switch {
	case d == GoJPEG || (d == "" || d == AutoDecoder) && library != nil:
		return GoJPEG, nil
	case d == Turbo && library != nil:
		return "", fmt.Errorf("JPEG decoder turbo: %w; or use the decoder go", library)
	case d == "" || slices.Contains(Decoders(), string(d)):
		return Turbo, nil
	}
	return "", fmt.Errorf("JPEG decoder %q is not known, want %s", d, strings.Join(Decoders(), ", "))
}

// turboHandle is a worker's decoder, created on first use.
type turboHandle struct{ *turbojpeg.Decoder }

func (h *turboHandle) get() (*turbojpeg.Decoder, error) {
	if h.Decoder == nil {
		library, err := turbojpeg.Open()
		if err != nil {
			return nil, err
		}
		if h.Decoder, err = library.NewDecoder(); err != nil {
			return nil, err
		}
	}
	return h.Decoder, nil
}

// turboPixels is the largest image, in pixels, decoded by libjpeg-turbo. The source handles larger
// ones.
const turboPixels = 100e6

// turbo decodes image e to w.pixels by libjpeg-turbo. done is false if the file is not a JPEG, or
// the library fails to decode it; then the source decodes it or returns the error.
func (p *decodedImages) turbo(w *worker, e int, v view) (done bool, err error) {
	source, ok := p.source.(images.Encoded)
	if !ok {
		return false, nil
	}
	decoder, err := w.turbo.get()
	if err != nil {
		return false, err
	}
	if w.file, err = source.Encoded(w.file[:0], e); err != nil {
		return false, err
	}
	head, err := decoder.Header(w.file)
	if err != nil || !head.Supported() || head.W <= 0 || head.H <= 0 || head.W > turboPixels/head.H {
		return false, nil
	}
	begin := *v.s // the source draws the same random numbers again if this fails
	across, down := v.windows(head.W, head.H)
	f := reduction(across, down)
	w.whole.Resize(head.Reduced(f))
	if err := decoder.Decode(w.whole.Pix, w.file, head, f); err != nil {
		*v.s = begin
		return false, nil
	}
	if f > 1 {
		across, down = across.reduced(f, w.whole.W), down.reduced(f, w.whole.H)
	}
	w.scale.run(w.pixels, w.whole.Pix, 3*w.whole.W, v.side, v.side, across, down)
	return true, nil
}

// reduction returns the largest factor f such that an image reduced by 1/f still has a pixel for
// each output pixel.
func reduction(across, down window) int {
	for _, f := range turbojpeg.Reductions {
		if f*across.out <= across.size && f*down.out <= down.size {
			return f
		}
	}
	return 1
}

// libraryError returns the reason why libjpeg-turbo is not available, or nil.
func libraryError() error {
	_, err := turbojpeg.Open()
	if errors.Is(err, turbojpeg.ErrNotFound) {
		return turbojpeg.ErrNotFound
	}
	return err
}
