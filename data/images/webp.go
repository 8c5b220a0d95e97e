package images

import (
	"bytes"
	"image"

	"golang.org/x/image/webp"
)

// decodeWebP decodes a still picture. Lossy ones have the range of video, 16 to 235 for luma and 16
// to 240 for chroma, which the types of package image do not have, so they are converted here.
func decodeWebP(b []byte, _ header) (image.Image, error) {
	m, err := webp.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *image.YCbCr:
		return fromVideo(m), nil
	case *image.NYCbCrA:
		return fromVideo(&m.YCbCr), nil
	}
	return m, nil
}

// fromVideo converts to RGB by the formula of BT.601 in libwebp's fixed point of 14 bits.
func fromVideo(m *image.YCbCr) *image.NRGBA {
	out := image.NewNRGBA(m.Rect)
	var up upsampler
	up.set(m)
	for y := range m.Rect.Dy() {
		cbs, crs := up.row(y)
		for x, luma := range m.Y[m.YStride*y:][:m.Rect.Dx()] {
			v, cb, cr := int32(luma)*19077>>8, int32(cbs[x]), int32(crs[x])
			d := out.Pix[out.Stride*y+4*x:][:4]
			d[0] = clamp((v + cr*26149>>8 - 14234) >> 6)
			d[1] = clamp((v - cb*6419>>8 - cr*13320>>8 + 8708) >> 6)
			d[2] = clamp((v + cb*33050>>8 - 17685) >> 6)
			d[3] = 255
		}
	}
	return out
}
