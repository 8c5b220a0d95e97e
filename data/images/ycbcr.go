package images

import "image"

// The conversion from Y, Cb, Cr to red, green and blue is JFIF's, in libjpeg's 16-bit fixed
// point: chroma is relative to 128, and the sums for green are rounded once.
const (
	crRed   = 91881  // 1.40200
	cbGreen = 22554  // 0.34414
	crGreen = 46802  // 0.71414
	cbBlue  = 116130 // 1.77200
	half    = 1 << 15
)

// setYCbCr converts the part of a JPEG's planes in box. Subsampled chroma is interpolated as in
// libjpeg, so that pixels equal Pillow's where the planes do.
func (p *RGB) setYCbCr(m *image.YCbCr, box image.Rectangle, up *upsampler) {
	up.set(m)
	left := box.Min.X - m.Rect.Min.X
	for y := range p.H {
		cb, cr := up.row(box.Min.Y - m.Rect.Min.Y + y)
		ys := m.Y[m.YOffset(box.Min.X, box.Min.Y+y):][:p.W]
		fromYCbCr(p.Pix[3*p.W*y:][:3*p.W], ys, cb[left:][:p.W], cr[left:][:p.W])
	}
}

func fromYCbCrGo(dst, ys, cbs, crs []uint8) {
	cbs, crs = cbs[:len(ys)], crs[:len(ys)]
	for i, v := range ys {
		d := dst[3*i:][:3]
		y, cb, cr := int32(v), int32(cbs[i])-128, int32(crs[i])-128
		d[0] = clamp(y + (crRed*cr+half)>>16)
		d[1] = clamp(y + (half-cbGreen*cb-crGreen*cr)>>16)
		d[2] = clamp(y + (cbBlue*cb+half)>>16)
	}
}

func clamp(v int32) uint8 {
	if uint32(v) > 255 {
		v = ^(v >> 31) & 255
	}
	return uint8(v)
}
