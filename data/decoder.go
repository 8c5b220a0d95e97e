package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fspda/data/images"
	"fspda/data/turbojpeg"
)

// Decoder names what decodes JPEG files. Two decoders differ in the last bits of a pixel, so which
// one is used is part of the [Set.Fingerprint].
type Decoder string

const (
	AutoDecoder Decoder = "auto"  // Turbo where the machine has it, else GoJPEG
	GoJPEG      Decoder = "go"    // image/jpeg
	Turbo       Decoder = "turbo" // libjpeg-turbo, twice as fast
)

// Decoders lists the names.
func Decoders() []string { return []string{string(AutoDecoder), string(GoJPEG), string(Turbo)} }

// settle is the decoder meant, where library says whether libjpeg-turbo is there.
func (d Decoder) settle(library error) (Decoder, error) {
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

// turboHandle is a worker's decoder, made when it is first needed.
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

// turboPixels is the size of a picture, in pixels, that libjpeg-turbo is asked for at most. The
// source judges larger ones.
const turboPixels = 100e6

// turbo brings picture e into w.picture by libjpeg-turbo. It is not done where the file is no JPEG,
// or one that the library would rather not decode: that is for the source, which then gives a
// picture or the error.
func (p *pictures) turbo(w *worker, e int, v view) (done bool, err error) {
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
	begin := *v.s // drawn from again by the source's way, if this one fails
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
	w.scale.run(w.picture, w.whole.Pix, 3*w.whole.W, v.side, v.side, across, down)
	return true, nil
}

// reduction is the largest fraction 1/f at which a picture still has a pixel for each that is
// wanted of it.
func reduction(across, down window) int {
	for _, f := range turbojpeg.Reductions {
		if f*across.out <= across.size && f*down.out <= down.size {
			return f
		}
	}
	return 1
}

// libraryError says why libjpeg-turbo is not there, or nil.
func libraryError() error {
	_, err := turbojpeg.Open()
	if errors.Is(err, turbojpeg.ErrNotFound) {
		return turbojpeg.ErrNotFound
	}
	return err
}
