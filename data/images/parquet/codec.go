package parquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// codec is the compression of a column's pages.
type codec int64

const (
	plain  codec = 0
	snappy codec = 1
	gzips  codec = 2
	zstds  codec = 6
	lz4Raw codec = 7
)

func (c codec) String() string {
	names := [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("compression %d", int64(c))
	}
	return names[c]
}

// known reports whether this package can decompress it.
func (c codec) known() bool { return slices.Contains([]codec{plain, snappy, gzips, zstds, lz4Raw}, c) }

// zstdDecoder limits its output to the capacity of dst.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPage),
		zstd.WithDecodeAllCapLimit(true))
})

// decompress fills dst, whose length is the claimed size of the page.
func (c codec) decompress(dst, src []byte) error {
	n, err := 0, error(nil)
	switch c {
	case plain:
		n = copy(dst, src)
		if len(src) > n {
			n = len(src)
		}
	case snappy:
		if n, err = s2.DecodedLen(src); err == nil && n == len(dst) {
			_, err = s2.Decode(dst, src)
		}
	case gzips:
		n, err = gunzip(dst, src)
	case zstds:
		var d *zstd.Decoder
		if d, err = zstdDecoder(); err == nil {
			var out []byte
			out, err = d.DecodeAll(src, dst[:0:len(dst)])
			n = len(out)
		}
	case lz4Raw:
		n, err = lz4.UncompressBlock(src, dst)
	default:
		return unknown{"the compression " + c.String()}
	}
	if err == nil && n != len(dst) {
		err = fmt.Errorf("%d bytes", n)
	}
	if err != nil {
		return fmt.Errorf("a page of %d bytes, %s: %w", len(dst), c, err)
	}
	return nil
}

func gunzip(dst, src []byte) (int, error) {
	r, err := gzip.NewReader(bytes.NewReader(src))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	var more [1]byte
	if k, err := r.Read(more[:]); k > 0 || !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("it goes on: %w", err)
	}
	return n, nil
}

// unknown reports an unsupported feature of the format.
type unknown struct{ what string }

func (u unknown) Error() string { return u.what }
