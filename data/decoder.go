package data

import (
	"fmt"
	"image"
	"slices"
	"strings"

	"fspda/data/images"
)

// Decoder names a way to decode JPEG files. They differ in the last bits of a pixel, so the decoder
// is part of the [Set.Fingerprint]. All are part of the program: a machine's libraries have no
// effect.
type Decoder string

const (
	AutoDecoder Decoder = "auto"    // LibJPEG
	LibJPEG     Decoder = "libjpeg" // the pixels of libjpeg-turbo, by our own decoder
	Turbo       Decoder = "turbo"   // another name of LibJPEG
	GoJPEG      Decoder = "go"      // image/jpeg, three times slower
)

// Decoders lists the names.
func Decoders() []string {
	return []string{string(AutoDecoder), string(LibJPEG), string(GoJPEG), string(Turbo)}
}

// resolve returns LibJPEG or GoJPEG.
func (d Decoder) resolve() (Decoder, error) {
	switch {
	case d == GoJPEG:
		return GoJPEG, nil
	case d == "" || slices.Contains(Decoders(), string(d)):
		return LibJPEG, nil
	}
	return "", fmt.Errorf("JPEG decoder %q is not known, want %s", d, strings.Join(Decoders(), ", "))
}

// encoded decodes the part of image e that a view needs, and scales it to w.pixels. done is false
// if it cannot be decoded; then the source returns the error.
func (p *decodedImages) encoded(w *worker, source images.Encoded, e int, v view) (done bool, err error) {
	if w.file, err = source.Encoded(w.file[:0], e); err != nil {
		return false, err
	}
	w.decoder.Standard = p.decoder == GoJPEG
	width, height, err := w.decoder.Open(w.file, 0)
	if err != nil {
		return false, nil
	}
	across, down := v.windows(width, height)
	return w.crop(v.side, across, down) == nil, nil
}

// crop decodes the part of the opened picture that two windows need, and scales it to w.pixels.
func (w *worker) crop(side int, across, down window) error {
	box := w.scale.set(side, side, across, down)
	if err := w.decoder.Decode(&w.whole, box); err != nil {
		return err
	}
	w.scale.run(w.pixels, w.whole.Pix, 3*w.whole.W, box.Min)
	return nil
}

// decoded scales the part of decoded pixels that a view needs to w.pixels.
func (w *worker) decoded(pix []uint8, width, height int, v view) {
	across, down := v.windows(width, height)
	w.scale.set(v.side, v.side, across, down)
	w.scale.run(w.pixels, pix, 3*width, image.Point{})
}
