package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// header is the information from the first bytes of an image.
type header struct {
	w, h   int
	parts  int  // components of a JPEG: 1, 3 or 4
	adobe  bool // a JPEG with Adobe's marker
	decode func(encoded []byte, h header) (image.Image, error)
}

// readHeader detects the format of a picture, and reads its size.
func readHeader(b []byte) (header, error) {
	switch {
	case len(b) == 0:
		return header{}, errors.New("an empty file")
	case bytes.HasPrefix(b, []byte("\xff\xd8")):
		return jpegHeader(b)
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return pngHeader(b)
	case bytes.HasPrefix(b, []byte("GIF8")):
		return configured(b, gif.DecodeConfig, decodeGIF)
	case bytes.HasPrefix(b, []byte("RIFF")) && len(b) >= 12 && string(b[8:12]) == "WEBP":
		return configured(b, webp.DecodeConfig, decodeWebP)
	case bytes.HasPrefix(b, []byte("BM")):
		return configured(b, bmp.DecodeConfig, func(b []byte, _ header) (image.Image, error) {
			return bmp.Decode(bytes.NewReader(b))
		})
	}
	return header{}, fmt.Errorf("neither JPEG, PNG, GIF, WebP nor BMP but %s", http.DetectContentType(b))
}

// configured reads a header by the format's own function.
func configured(b []byte, config func(io.Reader) (image.Config, error),
	decode func([]byte, header) (image.Image, error)) (header, error) {
	c, err := config(bytes.NewReader(b))
	if err != nil {
		return header{}, fmt.Errorf("damaged: %w", err)
	}
	return sized(header{w: c.Width, h: c.Height, decode: decode})
}

var errCutOff = errors.New("damaged: the file is cut off in its header")

// pngHeader reads the chunk IHDR, which is the first.
func pngHeader(b []byte) (header, error) {
	if len(b) < 24 {
		return header{}, errCutOff
	}
	if string(b[12:16]) != "IHDR" {
		return header{}, errors.New("damaged: a PNG without IHDR")
	}
	return sized(header{w: int(binary.BigEndian.Uint32(b[16:])), h: int(binary.BigEndian.Uint32(b[20:])),
		decode: decodePNG})
}

func decodePNG(b []byte, _ header) (image.Image, error) { return png.Decode(bytes.NewReader(b)) }

func decodeJPEG(b []byte, h header) (image.Image, error) { return jpeg.Decode(withMarker(b, h)) }

// jpegHeader skips the segments of a JPEG up to its frame header (ITU-T T.81, B.2.2).
func jpegHeader(b []byte) (header, error) {
	out := header{decode: decodeJPEG}
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
		if marker == 0 || marker == 1 || marker >= 0xd0 && marker <= 0xd8 { // segments without content
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
