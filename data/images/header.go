package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

var errCutOff = errors.New("damaged: the file is cut off in its header")

// pngHeader reads the chunk IHDR, which is the first.
func pngHeader(b []byte) (header, error) {
	if len(b) < 24 {
		return header{}, errCutOff
	}
	if string(b[12:16]) != "IHDR" {
		return header{}, errors.New("damaged: a PNG without IHDR")
	}
	return sized(header{png: true, w: int(binary.BigEndian.Uint32(b[16:])), h: int(binary.BigEndian.Uint32(b[20:]))})
}

// jpegHeader skips the segments of a JPEG up to its frame header (ITU-T T.81, B.2.2).
func jpegHeader(b []byte) (header, error) {
	var out header
	for at := 2; ; {
		// bytes between segments are skipped, as in libjpeg
		for at < len(b) && b[at] != 0xff {
			at++
		}
		for at < len(b) && b[at] == 0xff {
			at++
		}
		if at+3 > len(b) {
			return out, errCutOff
		}
		marker := b[at]
		at++
		if marker == 0 || marker == 1 || marker >= 0xd0 && marker <= 0xd8 { // without content
			continue
		}
		size := int(binary.BigEndian.Uint16(b[at:]))
		if size < 2 || at+size > len(b) {
			return out, errCutOff
		}
		segment := b[at+2 : at+size]
		at += size
		switch {
		case marker == 0xee && bytes.HasPrefix(segment, []byte("Adobe")):
			out.adobe = true
		case marker == 0xda || marker == 0xd9:
			return out, errors.New("damaged: a JPEG without a frame header")
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if len(segment) < 6 {
				return out, errCutOff
			}
			out.h, out.w = int(binary.BigEndian.Uint16(segment[1:])), int(binary.BigEndian.Uint16(segment[3:]))
			out.parts = int(segment[5])
			return sized(out)
		}
	}
}

func sized(h header) (header, error) {
	if h.w <= 0 || h.h <= 0 {
		return h, errors.New("damaged: a picture of no size")
	}
	return h, nil
}

// adobeMarker is Adobe's JPEG marker segment, here for CMYK without a transform.
const adobeMarker = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"

// withMarker makes Go's decoder treat a JPEG with four components and without a marker as CMYK, as
// libjpeg does.
func withMarker(b []byte, h header) io.Reader {
	if h.parts != 4 || h.adobe {
		return bytes.NewReader(b)
	}
	return io.MultiReader(bytes.NewReader(b[:2]), bytes.NewReader([]byte(adobeMarker)), bytes.NewReader(b[2:]))
}
