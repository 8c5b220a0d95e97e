package images

import "image"

// upsampler scales the chroma of an image to the size of its luma, row by row. Halved chroma is
// interpolated by libjpeg's triangle filter: each sample is 3/4 of the nearer and 1/4 of the
// further neighbour, in each halved direction, with rounding that alternates between up and down.
// Other ratios, which are rare, repeat samples.
type upsampler struct {
	m      *image.YCbCr
	dx, dy int // luma samples per chroma sample
	w, h   int // used size of the chroma planes
	rows   [2][]uint8
	sums   []int32
}

func newUpsampler(m *image.YCbCr) *upsampler {
	u := &upsampler{m: m}
	u.dx, u.dy = ratio(m.SubsampleRatio)
	u.w, u.h = (m.Rect.Dx()+u.dx-1)/u.dx, (m.Rect.Dy()+u.dy-1)/u.dy
	if u.dx > 1 || u.dy > 1 {
		for i := range u.rows {
			u.rows[i] = make([]uint8, (u.w+1)*u.dx)
		}
		u.sums = make([]int32, u.w)
	}
	return u
}

func ratio(r image.YCbCrSubsampleRatio) (dx, dy int) {
	switch r {
	case image.YCbCrSubsampleRatio422:
		return 2, 1
	case image.YCbCrSubsampleRatio420:
		return 2, 2
	case image.YCbCrSubsampleRatio440:
		return 1, 2
	case image.YCbCrSubsampleRatio411:
		return 4, 1
	case image.YCbCrSubsampleRatio410:
		return 4, 2
	}
	return 1, 1
}

// row returns the chroma of row y of the picture. It is valid until the next call.
func (u *upsampler) row(y int) (cb, cr []uint8) {
	if u.dx == 1 && u.dy == 1 {
		at := u.m.CStride * y
		return u.m.Cb[at:][:u.w], u.m.Cr[at:][:u.w]
	}
	u.plane(u.rows[0], u.m.Cb, y)
	u.plane(u.rows[1], u.m.Cr, y)
	return u.rows[0], u.rows[1]
}

// plane interpolates a row of a plane.
func (u *upsampler) plane(dst, plane []uint8, y int) {
	near, far := u.neighbours(plane, y)
	// libjpeg interpolates only rows of more than two samples.
	switch {
	case u.dx == 2 && u.dy == 2 && u.w > 2:
		for i := range u.sums {
			u.sums[i] = 3*int32(near[i]) + int32(far[i])
		}
		doubleSums(dst, u.sums)
	case u.dx == 2 && u.dy == 1 && u.w > 2:
		double(dst, near)
	case u.dx == 1 && u.dy == 2:
		bias := int32(1 + y&1) // libjpeg-turbo: 1 above, 2 below
		for i := range near {
			dst[i] = uint8((3*int32(near[i]) + int32(far[i]) + bias) >> 2)
		}
	default:
		for i, v := range near {
			for k := range u.dx {
				dst[u.dx*i+k] = v
			}
		}
	}
}

// neighbours returns the row of chroma that contains row y, and the adjacent one on the other side
// of y, or the same row at an edge.
func (u *upsampler) neighbours(plane []uint8, y int) (near, far []uint8) {
	at := y / u.dy
	other := at - 1
	if y%u.dy > 0 {
		other = at + 1
	}
	if other < 0 || other >= u.h || u.dy == 1 {
		other = at
	}
	return plane[u.m.CStride*at:][:u.w], plane[u.m.CStride*other:][:u.w]
}

// double interpolates a row.
func double(dst, src []uint8) {
	n := len(src)
	dst[0] = src[0]
	dst[1] = uint8((3*int32(src[0]) + int32(src[1]) + 2) >> 2)
	for i := 1; i < n-1; i++ {
		v := 3 * int32(src[i])
		dst[2*i] = uint8((v + int32(src[i-1]) + 1) >> 2)
		dst[2*i+1] = uint8((v + int32(src[i+1]) + 2) >> 2)
	}
	dst[2*n-2] = uint8((3*int32(src[n-1]) + int32(src[n-2]) + 1) >> 2)
	dst[2*n-1] = src[n-1]
}

// doubleSums interpolates a row of sums that are four times the value.
func doubleSums(dst []uint8, s []int32) {
	n := len(s)
	dst[0] = uint8((4*s[0] + 8) >> 4)
	dst[1] = uint8((3*s[0] + s[1] + 7) >> 4)
	for i := 1; i < n-1; i++ {
		v, d := 3*s[i], dst[2*i:][:2]
		d[0] = uint8((v + s[i-1] + 8) >> 4)
		d[1] = uint8((v + s[i+1] + 7) >> 4)
	}
	dst[2*n-2] = uint8((3*s[n-1] + s[n-2] + 8) >> 4)
	dst[2*n-1] = uint8((4*s[n-1] + 7) >> 4)
}
