package images

import (
	"fmt"
	"image"
	"sync"

	"fspda/data/images/jpeg"
)

// TooLargeError reports an image whose header claims more pixels than allowed; it is not decoded.
type TooLargeError struct{ W, H, Max int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%d×%d pixels by its header, want at most %d in all", e.W, e.H, e.Max)
}

// Decoder decodes one picture at a time and keeps its memory for the next. Its zero value is ready
// for use by one goroutine.
//
// Formats are JPEG, PNG, GIF, WebP and BMP, detected from the content. Colours are converted like
// Pillow's convert("RGB"): grey is repeated, palettes are looked up, transparency is dropped, 16-bit
// values keep their upper 8 bits (also for grey, where Pillow clips), and CMYK is read as Adobe
// writes it, inverted. As in torchvision, EXIF rotation is ignored, and of an animation the first
// frame is decoded.
type Decoder struct {
	// Standard decodes every JPEG by image/jpeg, whose pixels depend on the version of Go. Otherwise
	// it decodes only those that package jpeg leaves to it.
	Standard bool

	encoded []byte
	head    header
	jpeg    jpeg.Decoder
	up      upsampler
	common  bool
}

// Open reads the header of a picture and returns its size. A picture of more than maxPixels is a
// [TooLargeError]; 0 means 100 million. The content must stay unchanged until Decode has returned.
func (d *Decoder) Open(encoded []byte, maxPixels int) (w, h int, err error) {
	defer recovered(&err)
	if maxPixels <= 0 {
		maxPixels = defaultMaxPixels
	}
	if d.head, err = readHeader(encoded); err != nil {
		return 0, 0, err
	}
	if d.head.w > maxPixels/d.head.h {
		return 0, 0, &TooLargeError{W: d.head.w, H: d.head.h, Max: maxPixels}
	}
	d.encoded = encoded
	return d.head.w, d.head.h, nil
}

// Decode decodes the pixels of the opened picture in a box, which must not be empty or exceed it.
// Damage anywhere in the picture is an error.
func (d *Decoder) Decode(dst *RGB, box image.Rectangle) (err error) {
	defer recovered(&err)
	m := d.photograph(box)
	if m == nil {
		if m, err = d.head.decode(d.encoded, d.head); err != nil {
			return fmt.Errorf("damaged: %w", err)
		}
	}
	dst.set(m, box, &d.up)
	d.common = false
	switch m.(type) {
	case *image.YCbCr, *image.Gray:
		d.common = d.head.parts > 0
	}
	return nil
}

// recovered turns a panic of a library, which may happen for a damaged picture, into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged: it cannot be decoded: %v", p)
	}
}

// Common reports whether the decoded picture is a grey JPEG or one of luma and chroma, which every
// program reads alike.
func (d *Decoder) Common() bool { return d.common }

// photograph decodes a JPEG by package jpeg, or returns nil if that leaves it to image/jpeg.
func (d *Decoder) photograph(box image.Rectangle) image.Image {
	if d.Standard || d.head.parts == 0 {
		return nil
	}
	if w, h, err := d.jpeg.Header(d.encoded); err != nil || w != d.head.w || h != d.head.h {
		return nil
	}
	m, err := d.jpeg.Decode(box)
	if err != nil {
		return nil
	}
	return m
}

// decoders are kept for Decode.
var decoders = sync.Pool{New: func() any { return new(Decoder) }}

// Decode decodes a whole picture into dst, see [Decoder].
func Decode(dst *RGB, encoded []byte, maxPixels int) error {
	d := decoders.Get().(*Decoder)
	defer decoders.Put(d)
	defer func() { d.encoded = nil }()
	w, h, err := d.Open(encoded, maxPixels)
	if err != nil {
		return err
	}
	return d.Decode(dst, image.Rect(0, 0, w, h))
}
