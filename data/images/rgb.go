package images

import (
	"image"
	"image/color"
)

// SetImage converts m with the rules of [Decoder].
func (p *RGB) SetImage(m image.Image) { p.set(m, m.Bounds(), new(upsampler)) }

// set converts the part of m in box.
func (p *RGB) set(m image.Image, box image.Rectangle, up *upsampler) {
	p.Resize(box.Dx(), box.Dy())
	switch m := m.(type) {
	case *image.YCbCr:
		p.setYCbCr(m, box, up)
	case *image.Gray:
		p.setRows(m.Pix[m.PixOffset(box.Min.X, box.Min.Y):], m.Stride, 1, fromGray)
	case *image.RGBA:
		p.setRows(m.Pix[m.PixOffset(box.Min.X, box.Min.Y):], m.Stride, 4, fromRGBA)
	case *image.NRGBA:
		p.setRows(m.Pix[m.PixOffset(box.Min.X, box.Min.Y):], m.Stride, 4, fromRGBA)
	case *image.CMYK:
		p.setRows(m.Pix[m.PixOffset(box.Min.X, box.Min.Y):], m.Stride, 4, fromCMYK)
	case *image.Gray16:
		p.setRows(m.Pix[m.PixOffset(box.Min.X, box.Min.Y):], m.Stride, 2, fromGray16)
	case *image.RGBA64:
		p.setRows(m.Pix[m.PixOffset(box.Min.X, box.Min.Y):], m.Stride, 8, fromRGBA64)
	case *image.NRGBA64:
		p.setRows(m.Pix[m.PixOffset(box.Min.X, box.Min.Y):], m.Stride, 8, fromRGBA64)
	case *image.Paletted:
		p.setPaletted(m, box)
	default:
		p.setAny(m, box)
	}
}

// setRows converts pixels of size bytes row by row.
func (p *RGB) setRows(pix []uint8, stride, size int, convert func(dst, src []uint8)) {
	for y := range p.H {
		convert(p.Pix[3*p.W*y:][:3*p.W], pix[stride*y:][:size*p.W])
	}
}

func fromGray(dst, src []uint8) {
	for i, v := range src {
		d := dst[3*i:][:3]
		d[0], d[1], d[2] = v, v, v
	}
}

func fromGray16(dst, src []uint8) {
	for i := range len(src) / 2 {
		d, v := dst[3*i:][:3], src[2*i]
		d[0], d[1], d[2] = v, v, v
	}
}

func fromRGBA(dst, src []uint8) {
	for i := range len(src) / 4 {
		d, s := dst[3*i:][:3], src[4*i:][:4]
		d[0], d[1], d[2] = s[0], s[1], s[2]
	}
}

func fromRGBA64(dst, src []uint8) {
	for i := range len(src) / 8 {
		d, s := dst[3*i:][:3], src[8*i:][:8]
		d[0], d[1], d[2] = s[0], s[2], s[4]
	}
}

// fromCMYK converts with Pillow's rounding: (255-k) - c·(255-k)/255.
func fromCMYK(dst, src []uint8) {
	for i := range len(src) / 4 {
		d, s := dst[3*i:][:3], src[4*i:][:4]
		white := 255 - uint32(s[3])
		for c := range 3 {
			ink := uint32(s[c])*white + 128
			d[c] = uint8(white - (ink>>8+ink)>>8)
		}
	}
}

func (p *RGB) setPaletted(m *image.Paletted, box image.Rectangle) {
	var table [256][3]uint8 // an index outside the palette is black
	for i, c := range m.Palette {
		table[i] = opaque(c)
	}
	for y := range p.H {
		dst := p.Pix[3*p.W*y:][:3*p.W]
		for x, v := range m.Pix[m.PixOffset(box.Min.X, box.Min.Y+y):][:p.W] {
			copy(dst[3*x:], table[v][:])
		}
	}
}

// opaque returns a colour without its transparency.
func opaque(c color.Color) [3]uint8 {
	switch c := c.(type) {
	case color.RGBA:
		return [3]uint8{c.R, c.G, c.B}
	case color.NRGBA:
		return [3]uint8{c.R, c.G, c.B}
	}
	n := color.NRGBA64Model.Convert(c).(color.NRGBA64)
	return [3]uint8{uint8(n.R >> 8), uint8(n.G >> 8), uint8(n.B >> 8)}
}

// setAny converts image types that Go's decoders do not return.
func (p *RGB) setAny(m image.Image, box image.Rectangle) {
	for y := range p.H {
		for x := range p.W {
			c := opaque(m.At(box.Min.X+x, box.Min.Y+y))
			copy(p.Pix[3*(p.W*y+x):], c[:])
		}
	}
}
