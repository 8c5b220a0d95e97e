package images

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"

	"golang.org/x/image/webp"
)

// decodeWebP decodes a still picture, or the first frame of an animation as Pillow does: what it
// leaves out is black.
func decodeWebP(b []byte, h header) (image.Image, error) {
	still, at, ok := firstFrame(b)
	if !ok {
		return decodeStill(b)
	}
	whole := image.Rect(0, 0, h.w, h.h)
	if !at.In(whole) {
		return nil, fmt.Errorf("the first frame of the animation, %v, lies outside of its %d×%d pixels", at, h.w, h.h)
	}
	m, err := decodeStill(still)
	if err != nil || at == whole {
		return m, err
	}
	frame, ok := m.(*image.NRGBA)
	if !ok {
		return nil, fmt.Errorf("the first frame of the animation is a %T", m)
	}
	out := image.NewNRGBA(whole)
	for y := range at.Dy() {
		copy(out.Pix[out.PixOffset(at.Min.X, at.Min.Y+y):], frame.Pix[frame.Stride*y:][:4*at.Dx()])
	}
	return out, nil
}

// decodeStill decodes a still picture. Lossy ones have the range of video, 16 to 235 for luma and 16
// to 240 for chroma, which the types of package image do not have, so they are converted here.
func decodeStill(b []byte) (image.Image, error) {
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

// firstFrame returns the first frame of an animated WebP as a still picture of its own, and where it
// lies in the animation (RIFF container of WebP, ANMF chunk). ok is false for a still picture.
func firstFrame(b []byte) (still []byte, at image.Rectangle, ok bool) {
	frame := chunk(b[12:], "ANMF")
	if len(frame) < 16 {
		return nil, at, false
	}
	var v [4]int // 24 bits each
	for i := range v {
		v[i] = int(frame[3*i]) | int(frame[3*i+1])<<8 | int(frame[3*i+2])<<16
	}
	at = image.Rect(2*v[0], 2*v[1], 2*v[0]+v[2]+1, 2*v[1]+v[3]+1)
	still = append(still, b[:12]...)
	still = append(still, "VP8X\x0a\x00\x00\x00\x00\x00\x00\x00"...)
	if chunk(frame[16:], "ALPH") != nil {
		still[20] = 0x10
	}
	still = append(append(still, frame[6:12]...), frame[16:]...)
	binary.LittleEndian.PutUint32(still[4:], uint32(len(still)-8))
	return still, at, true
}

// chunk returns the content of the first chunk of a RIFF list with a name; nil: there is none.
func chunk(list []byte, name string) []byte {
	for len(list) >= 8 {
		size := uint64(binary.LittleEndian.Uint32(list[4:]))
		if size > uint64(len(list)-8) {
			return nil
		}
		if string(list[:4]) == name {
			return list[8 : 8+size]
		}
		list = list[min(uint64(len(list)), 8+size+size%2):]
	}
	return nil
}
