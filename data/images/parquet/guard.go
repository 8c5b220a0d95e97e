package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// checkPage checks that a page of a chunk has the size that its header claims: parquet-go lets the
// compressed bytes decide, which may be any size in a damaged file, and with LZ4 all memory.
func (r *reader) checkPage(p page) error {
	codec := r.codec()
	if codec == format.Uncompressed || !p.compressed {
		return nil
	}
	section := io.NewSectionReader(r.disk, p.data, p.stored)
	var err error
	switch codec {
	case format.Snappy:
		var head [16]byte
		n, _ := io.ReadFull(section, head[:]) // a short page has a short head
		size, e := snappy.DecodedLen(head[:n])
		if err = e; err == nil && int64(size) != p.size {
			err = fmt.Errorf("%d bytes, want %d", size, p.size)
		}
	case format.Gzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(section); err == nil {
			err = exactly(z, p.size)
		}
	case format.Zstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(section, zstd.WithDecoderConcurrency(1)); err == nil {
			err = exactly(z, p.size)
			z.Close()
		}
	case format.Brotli:
		err = exactly(brotli.NewReader(section), p.size)
	case format.Lz4Raw:
		var b bytes.Buffer
		if _, err = io.Copy(&b, section); err == nil {
			var n int
			if n, err = lz4.UncompressBlock(b.Bytes(), make([]byte, p.size)); err == nil && int64(n) != p.size {
				err = fmt.Errorf("%d bytes, want %d", n, p.size)
			}
		}
	default:
		err = errors.New("unknown compression")
	}
	if err != nil {
		return fmt.Errorf("a page compressed by %s: %w", codec, err)
	}
	return nil
}

// exactly reads size bytes, which must be all.
func exactly(r io.Reader, size int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes or more, want %d", n, size)
	}
	return err
}
