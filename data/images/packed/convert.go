package packed

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"

	"github.com/nfnt/resize"

	"fspda/data/images"
)

// converter converts images to rows. Each worker has one, for its buffers.
type converter struct {
	path      string // path of the set, for errors
	settings  Settings
	maxPixels int
	encoded   []byte
	decoder   images.Decoder
	rgb       images.RGB
}

// row reads, decodes, scales and encodes picture i.
func (c *converter) row(from images.Source, i int) (row, error) {
	r := row{label: from.Label(i), name: nameOf(from, i)}
	kept, err := c.load(from, i)
	if err != nil {
		return r, err
	}
	small := c.scaled()
	switch {
	case c.settings.Format == JPEG && small == nil && kept:
		r.w, r.h, r.content = c.rgb.W, c.rgb.H, bytes.Clone(c.encoded)
	case c.settings.Format == JPEG:
		if small == nil {
			small = withAlpha(&c.rgb)
		}
		r.w, r.h = small.Rect.Dx(), small.Rect.Dy()
		r.content, err = encodeJPEG(small, c.settings.Quality)
	case small == nil:
		r.w, r.h, r.content = c.rgb.W, c.rgb.H, bytes.Clone(c.rgb.Pix)
	default:
		c.rgb.SetImage(small)
		r.w, r.h, r.content = c.rgb.W, c.rgb.H, bytes.Clone(c.rgb.Pix)
	}
	return r, err
}

// load decodes image i into c.rgb. keep reports whether c.encoded is a JPEG in a common colour
// format.
func (c *converter) load(from images.Source, i int) (keep bool, err error) {
	e, ok := from.(images.Encoded)
	if !ok {
		return false, from.Image(&c.rgb, i)
	}
	if c.encoded, err = e.Encoded(c.encoded[:0], i); err != nil {
		return false, err
	}
	w, h, err := c.decoder.Open(c.encoded, c.maxPixels)
	if err == nil {
		err = c.decoder.Decode(&c.rgb, image.Rect(0, 0, w, h))
	}
	if err != nil {
		return false, &images.PictureError{Path: c.path, Name: nameOf(from, i), Err: err}
	}
	return c.decoder.Common(), nil
}

// scaled returns the image in c.rgb with its short side scaled to the maximum, or nil if it is not
// longer. It scales RGB, since scaling the subsampled chroma would lose resolution twice, with 16
// bits per channel, since the filter truncates after each of its two passes, and rounds once.
func (c *converter) scaled() *image.RGBA {
	w, h := fit(c.rgb.W, c.rgb.H, c.settings.Size)
	if w == c.rgb.W && h == c.rgb.H {
		return nil
	}
	wide := image.NewRGBA64(image.Rect(0, 0, c.rgb.W, c.rgb.H))
	for i := range c.rgb.W * c.rgb.H {
		d, s := wide.Pix[8*i:][:8], c.rgb.Pix[3*i:][:3]
		d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = s[0], s[0], s[1], s[1], s[2], s[2], 255, 255
	}
	wide = resize.Resize(uint(w), uint(h), wide, resize.Lanczos3).(*image.RGBA64)
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range out.Pix {
		v := uint32(wide.Pix[2*i])<<8 | uint32(wide.Pix[2*i+1])
		out.Pix[i] = uint8((v + 128) / 257)
	}
	return out
}

// fit returns the size of an image of w×h when its short side is at most size. The long side is
// rounded down, as in torchvision, but to at least 1.
func fit(w, h, size int) (int, int) {
	switch {
	case min(w, h) <= size:
		return w, h
	case w < h:
		return size, size * h / w
	}
	return size * w / h, size
}

// withAlpha converts p to RGBA for the standard library.
func withAlpha(p *images.RGB) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, p.W, p.H))
	for i := range p.W * p.H {
		d, s := m.Pix[4*i:][:4], p.Pix[3*i:][:3]
		d[0], d[1], d[2], d[3] = s[0], s[1], s[2], 255
	}
	return m
}

func encodeJPEG(m *image.RGBA, quality int) ([]byte, error) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encoding as JPEG: %w", err)
	}
	return b.Bytes(), nil
}
