package link

import (
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Compression is a lossless compression of messages. The values of a model in training hardly
// compress; the codes of a coarse quantizer, with many equal values, do.
type Compression string

const (
	NoCompression Compression = "none"
	S2            Compression = "s2"   // fast
	Zstd          Compression = "zstd" // smaller
)

// ParseCompression returns the compression with a name.
func ParseCompression(name string) (Compression, error) {
	switch p := Compression(name); p {
	case NoCompression, S2, Zstd:
		return p, nil
	case "":
		return NoCompression, nil
	}
	return "", fmt.Errorf("link: no compression is named %q; write %s, %s or %s", name, NoCompression, S2, Zstd)
}

// enabled reports whether messages are compressed.
func (p Compression) enabled() bool { return p == S2 || p == Zstd }

// First byte of a compressed body.
const (
	prefixS2   = 1
	prefixZstd = 2
)

var (
	// the options are valid: no error
	zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	zstdReader, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
)

// compress returns the compressed body, or body itself if that is not longer.
func (p Compression) compress(body []byte) []byte {
	var out []byte
	switch p {
	case S2:
		out = append(out, prefixS2)
		out = append(out, s2.Encode(nil, body)...)
	case Zstd:
		out = zstdWriter.EncodeAll(body, append(out, prefixZstd))
	default:
		return body
	}
	if len(out) >= len(body) {
		return body
	}
	return out
}

// decompress returns the uncompressed body of a message. It decompresses no more than rawSize
// bytes, which has been checked against the limits of the run.
func decompress(p *recvMessage) ([]byte, error) {
	if !p.compressed {
		return p.body, nil
	}
	if len(p.body) == 0 {
		return nil, fmt.Errorf("link: a compressed message is empty")
	}
	var out []byte
	var err error
	switch src := p.body[1:]; p.body[0] {
	case prefixS2:
		var n int
		if n, err = s2.DecodedLen(src); err == nil && n == p.rawSize {
			out, err = s2.Decode(make([]byte, n), src)
		}
	case prefixZstd:
		out, err = decompressZstd(src, p.rawSize)
	default:
		err = fmt.Errorf("compression %d does not exist", p.body[0])
	}
	if err == nil && len(out) != p.rawSize {
		err = fmt.Errorf("it does not have the %d bytes that its frame says", p.rawSize)
	}
	if err != nil {
		return nil, fmt.Errorf("link: cannot decompress a message of %d bytes: %w", len(p.body), err)
	}
	return out, nil
}

// decompressZstd decompresses exactly n bytes. It refuses input whose header states another length,
// or none, without decompressing it, and further frames.
func decompressZstd(src []byte, n int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return nil, err
	}
	if !h.HasFCS || h.FrameContentSize != uint64(n) {
		return nil, fmt.Errorf("its zstd header does not state %d bytes", n)
	}
	return zstdReader.DecodeAll(src, make([]byte, 0, n))
}
