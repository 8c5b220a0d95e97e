package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
)

// TooLargeError reports an image whose header claims more pixels than allowed; it is not decoded.
type TooLargeError struct{ W, H, Max int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%d×%d pixels by its header, want at most %d in all", e.W, e.H, e.Max)
}

// Decode decodes a JPEG or PNG file into dst; it detects the format from the content. An image of
// more than maxPixels is a [TooLargeError], detected in the header; 0 means 100 million.
//
// Colours are converted like Pillow's convert("RGB"): grey is repeated, palettes are looked up,
// transparency is dropped, 16-bit values keep their upper 8 bits (also for grey, where Pillow
// clips), and CMYK is read as Adobe writes it, inverted. As in torchvision, EXIF rotation is
// ignored.
func Decode(dst *RGB, encoded []byte, maxPixels int) error {
	m, err := DecodeImage(encoded, maxPixels)
	if err != nil {
		return err
	}
	dst.SetImage(m)
	return nil
}

// DecodeImage is [Decode] without the conversion to RGB: it returns the image of Go's decoders.
func DecodeImage(encoded []byte, maxPixels int) (image.Image, error) {
	if maxPixels <= 0 {
		maxPixels = defaultMaxPixels
	}
	head, err := readHeader(encoded)
	if err != nil {
		return nil, err
	}
	if head.w > maxPixels/head.h {
		return nil, &TooLargeError{W: head.w, H: head.h, Max: maxPixels}
	}
	var m image.Image
	if head.png {
		m, err = png.Decode(bytes.NewReader(encoded))
	} else {
		m, err = jpeg.Decode(withMarker(encoded, head))
	}
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return m, nil
}

// header is the information from the first bytes of an image.
type header struct {
	png   bool
	w, h  int
	parts int  // components of a JPEG: 1, 3 or 4
	adobe bool // a JPEG with Adobe's marker
}

func readHeader(b []byte) (header, error) {
	switch {
	case len(b) == 0:
		return header{}, errors.New("an empty file")
	case bytes.HasPrefix(b, []byte("\xff\xd8")):
		return jpegHeader(b)
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return pngHeader(b)
	}
	return header{}, fmt.Errorf("neither JPEG nor PNG but %s", http.DetectContentType(b))
}
