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

// encoded decodes the part of image e that a view needs, and scales it to buf.pixels. done is false
// if it cannot be decoded; then the source returns the error.
func (p *decodedImages) encoded(buf *imageScratch, source images.Encoded, e int, v view) (done bool, err error) {
	if buf.file, err = source.Encoded(buf.file[:0], e); err != nil {
		return false, err
	}
	buf.decoder.Standard = p.decoder == GoJPEG
	width, height, err := buf.decoder.Open(buf.file, 0)
	if err != nil {
		return false, nil
	}
	across, down := v.windows(width, height)
	return buf.crop(v.side, across, down) == nil, nil
}

// crop decodes the part of the opened picture that two windows need, and scales it to buf.pixels.
func (buf *imageScratch) crop(side int, across, down window) error {
	box := buf.scale.set(side, side, across, down)
	if err := buf.decoder.Decode(&buf.whole, box); err != nil {
		return err
	}
	buf.scale.run(buf.pixels, buf.whole.Pix, 3*buf.whole.W, box.Min)
	return nil
}

// decoded scales the part of decoded pixels that a view needs to buf.pixels.
func (buf *imageScratch) decoded(pix []uint8, width, height int, v view) {
	across, down := v.windows(width, height)
	buf.scale.set(v.side, v.side, across, down)
	buf.scale.run(buf.pixels, pix, 3*width, image.Point{})
}
