package images

import "image"

// The conversion from Y, Cb, Cr to red, green and blue is that of JFIF, in libjpeg's 16-bit fixed
// point: chroma is relative to 128, and the sums for green are rounded once.
const (
	crRed   = 91881  // 1.40200
	cbGreen = 22554  // 0.34414
	crGreen = 46802  // 0.71414
	cbBlue  = 116130 // 1.77200
	half    = 1 << 15
)

// chroma holds the contributions of each value of Cb and Cr to the three colours.
var chroma = func() (t struct{ red, greenCb, greenCr, blue [256]int32 }) {
	for i := range 256 {
		v := int32(i) - 128
		t.red[i] = (crRed*v + half) >> 16
		t.blue[i] = (cbBlue*v + half) >> 16
		t.greenCb[i] = -cbGreen*v + half
		t.greenCr[i] = -crGreen * v
	}
	return t
}()

// setYCbCr converts a JPEG's planes. Subsampled chroma is interpolated as in libjpeg, so that
// pixels are those of Pillow except for the rounding of the cosine transform.
func (p *RGB) setYCbCr(m *image.YCbCr) {
	up := newUpsampler(m)
	for y := range p.H {
		cb, cr := up.row(y)
		fromYCbCr(p.Pix[3*p.W*y:][:3*p.W], m.Y[m.YStride*y:][:p.W], cb, cr)
	}
}

// fromYCbCr converts a row.
func fromYCbCr(dst, ys, cbs, crs []uint8) {
	cbs, crs = cbs[:len(ys)], crs[:len(ys)]
	for i, v := range ys {
		d := dst[3*i:][:3]
		y, cb, cr := int32(v), cbs[i], crs[i]
		d[0] = clamp(y + chroma.red[cr])
		d[1] = clamp(y + (chroma.greenCb[cb]+chroma.greenCr[cr])>>16)
		d[2] = clamp(y + chroma.blue[cb])
	}
}

func clamp(v int32) uint8 {
	if uint32(v) > 255 {
		v = ^(v >> 31) & 255
	}
	return uint8(v)
}
