package nats

import (
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Packing is a compression of messages that loses nothing. The numbers of a model in training
// hardly give way; what has many equal values does, such as codes of a coarse quantizer.
type Compression string

const (
	NoCompression Compression = "none"
	S2            Compression = "s2"   // fast
	Zstd          Compression = "zstd" // smaller
)

// ParsePacking checks the name of a packing.
func ParseCompression(name string) (Compression, error) {
	switch p := Compression(name); p {
	case NoCompression, S2, Zstd:
		return p, nil
	case "":
		return NoCompression, nil
	}
	return "", fmt.Errorf("nats: no packing is named %q; write %s, %s or %s", name, NoCompression, S2, Zstd)
}

// packs tells whether messages are packed at all.
func (p Compression) packs() bool { return p == S2 || p == Zstd }

// Bytes that tell the packings apart, before what is packed.
const (
	packedS2   = 1
	packedZstd = 2
)

var (
	// valid options: no error
	zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	zstdReader, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
)

// pack returns the body packed, or as it is where that is no longer.
func (p Compression) pack(body []byte) []byte {
	var out []byte
	switch p {
	case S2:
		out = append(out, packedS2)
		out = append(out, s2.Encode(nil, body)...)
	case Zstd:
		out = zstdWriter.EncodeAll(body, append(out, packedZstd))
	default:
		return body
	}
	if len(out) >= len(body) {
		return body
	}
	return out
}

// unpack returns the body of a parcel. A packed one says how long it is, and that was found to be
// within the bounds of the run; it is not unpacked beyond.
func unpack(p *parcel) ([]byte, error) {
	if !p.packed {
		return p.body, nil
	}
	if len(p.body) == 0 {
		return nil, fmt.Errorf("nats: a packed message without a byte")
	}
	var out []byte
	var err error
	switch src := p.body[1:]; p.body[0] {
	case packedS2:
		var n int
		if n, err = s2.DecodedLen(src); err == nil && n == p.raw {
			out, err = s2.Decode(make([]byte, n), src)
		}
	case packedZstd:
		out, err = unzstd(src, p.raw)
	default:
		err = fmt.Errorf("packing %d does not exist", p.body[0])
	}
	if err == nil && len(out) != p.raw {
		err = fmt.Errorf("it has not the %d bytes that its frame says", p.raw)
	}
	if err != nil {
		return nil, fmt.Errorf("nats: a packed message of %d bytes cannot be unpacked: %w", len(p.body), err)
	}
	return out, nil
}

// unzstd unpacks at most n bytes. The header of the packed text says how many there are; one that
// says more, or nothing, is refused unread.
func unzstd(src []byte, n int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return nil, err
	}
	if !h.HasFCS || h.FrameContentSize != uint64(n) {
		return nil, fmt.Errorf("its own header does not say %d bytes", n)
	}
	return zstdReader.DecodeAll(src, make([]byte, 0, n))
}
