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
	sums   []int16 // sums of a row, between copies of the first and the last
}

// set begins with an image, whose corner is a chroma sample's.
func (u *upsampler) set(m *image.YCbCr) {
	u.m = m
	u.dx, u.dy = ratio(m.SubsampleRatio)
	u.w, u.h = (m.Rect.Dx()+u.dx-1)/u.dx, (m.Rect.Dy()+u.dy-1)/u.dy
	if u.dx > 1 || u.dy > 1 {
		for i := range u.rows {
			u.rows[i] = grown(u.rows[i], u.w*u.dx)
		}
		u.sums = grown(u.sums, u.w+2)
	}
}

// grown returns a slice of n elements in the memory of s if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
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

func (u *upsampler) plane(dst, plane []uint8, y int) {
	near, far := u.neighbours(plane, y)
	// libjpeg interpolates only rows of more than two samples.
	switch {
	case u.dx == 2 && u.dy == 2 && u.w > 2:
		weighSum(u.sums[1:u.w+1], near, far)
		u.double(dst, 8, 7, 4)
	case u.dx == 2 && u.dy == 1 && u.w > 2:
		for i, v := range near {
			u.sums[1+i] = int16(v)
		}
		u.double(dst, 1, 2, 2)
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

// double interpolates the row in u.sums, rounded by left in even and by right in odd samples before
// a division by 2^shift.
func (u *upsampler) double(dst []uint8, left, right, shift int) {
	u.sums[0], u.sums[u.w+1] = u.sums[1], u.sums[u.w]
	interpolate(dst, u.sums, left, right, shift)
}

// weighSumGo computes 3·near + far.
func weighSumGo(dst []int16, near, far []uint8) {
	for i, v := range near {
		dst[i] = 3*int16(v) + int16(far[i])
	}
}

// interpolateGo writes two samples for each element of s but the first and the last.
func interpolateGo(dst []uint8, s []int16, left, right, shift int) {
	for i := 1; i < len(s)-1; i++ {
		v, d := 3*s[i], dst[2*i-2:][:2]
		d[0] = uint8((v + s[i-1] + int16(left)) >> shift)
		d[1] = uint8((v + s[i+1] + int16(right)) >> shift)
	}
}
