package images

import (
	"bytes"
	"image"
	"image/gif"
)

// decodeGIF decodes the first frame as Pillow does: the parts of the picture that it leaves out have
// the transparent colour, or the first of its palette. Go's decoder makes the transparent colour
// black, so the file is decoded as if it had none.
func decodeGIF(b []byte, h header) (image.Image, error) {
	b = bytes.Clone(b)
	left := uint8(0)
	if at := graphicControl(b); at > 0 && b[at+3]&1 > 0 {
		b[at+3] &^= 1
		left = b[at+6]
	}
	m, err := gif.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	frame, ok := m.(*image.Paletted)
	whole := image.Rect(0, 0, h.w, h.h)
	if !ok || frame.Rect == whole {
		return m, nil
	}
	out := image.NewPaletted(whole, frame.Palette)
	for i := range out.Pix {
		out.Pix[i] = left
	}
	for y := frame.Rect.Min.Y; y < frame.Rect.Max.Y; y++ {
		copy(out.Pix[out.PixOffset(frame.Rect.Min.X, y):][:frame.Rect.Dx()],
			frame.Pix[frame.PixOffset(frame.Rect.Min.X, y):])
	}
	return out, nil
}

// graphicControl returns the position of the last graphic control extension before the first frame
// (GIF89a, 23), or 0.
func graphicControl(b []byte) int {
	at, found := 13, 0
	if len(b) > 10 && b[10]&0x80 > 0 { // a global colour table
		at += 3 << (b[10]&7 + 1)
	}
	for at+8 <= len(b) && b[at] == 0x21 {
		if b[at+1] == 0xf9 && b[at+2] == 4 {
			found = at
		}
		for at += 2; at < len(b) && b[at] > 0; {
			at += 1 + int(b[at])
		}
		at++
	}
	return found
}
