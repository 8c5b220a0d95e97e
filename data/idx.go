package data

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"fspda/internal/bounded"
)

// IDX is the content of an IDX file of unsigned bytes: an array of any rank. The format is LeCun's:
// two zero bytes, a type byte, the rank as a byte, each dimension in 4 big-endian bytes, and the
// elements, row-major.
type IDX struct {
	Dims []int
	Data []uint8 // the product of Dims
}

const (
	idxUint8  = 0x08
	idxImages = 0x0803
	idxLabels = 0x0801

	maxIDXRank = 4
	maxIDXSize = 1 << 30 // bytes; limits the allocation for a damaged header
)

// idxTypes names the element types of the format, for messages.
var idxTypes = map[byte]string{0x08: "unsigned byte", 0x09: "signed byte", 0x0B: "16-bit", 0x0C: "32-bit",
	0x0D: "float", 0x0E: "double"}

// ReadIDX reads an IDX file of unsigned bytes, plain or gzipped, which it detects from the content.
// A file that cannot be opened is the error of [os.Open]; a malformed one is a [FormatError].
// Memory grows with the content read, not with the header's claim.
func ReadIDX(path string) (*IDX, error) { return readIDX(path, 0) }

// readIDX reads a file and, if magic is not 0, checks its magic number.
func readIDX(path string, magic uint32) (*IDX, error) {
	f, err := bounded.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close() // read only: an error loses no data
	return decodeIDX(path, f, magic)
}

func decodeIDX(path string, from io.Reader, magic uint32) (*IDX, error) {
	content, err := uncompressed(path, from)
	if err != nil {
		return nil, err
	}
	dims, offset, err := idxHeader(path, content, magic)
	if err != nil {
		return nil, err
	}
	size := 1
	for _, d := range dims {
		size *= d
	}
	data, err := io.ReadAll(io.LimitReader(content, int64(size)))
	if err != nil {
		return nil, damaged(path, fmt.Sprintf("damage after byte %d of the content", offset+len(data)), err)
	}
	if len(data) < size {
		return nil, &FormatError{Path: path, Got: fmt.Sprintf("%d bytes", offset+len(data)),
			Want: fmt.Sprintf("%d for dimensions %v",
				offset+size, dims), Hint: "the file is cut off; fetch it again", Err: io.ErrUnexpectedEOF}
	}
	// Reading one more byte makes gzip verify its checksum.
	switch n, err := io.ReadFull(content, make([]byte, 1)); {
	case n > 0:
		return nil, &FormatError{Path: path, Got: fmt.Sprintf("more bytes after byte %d", offset+size),
			Want: fmt.Sprintf("the end, by "+
				"dimensions %v", dims), Hint: "the file is damaged or two files were joined; fetch it again"}
	case err != io.EOF:
		return nil, damaged(path, "damage at the end of the content", err)
	}
	return &IDX{Dims: dims, Data: data}, nil
}

// uncompressed returns the content of a file, plain or gzipped.
func uncompressed(path string, from io.Reader) (io.Reader, error) {
	r := bufio.NewReaderSize(from, 1<<16)
	if head, _ := r.Peek(2); len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		return r, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, damaged(path, "a gzip file with a bad header", err)
	}
	return z, nil
}

// idxHeader reads the magic number and the dimensions, and returns the number of bytes read.
func idxHeader(path string, r io.Reader, want uint32) (dims []int, offset int, err error) {
	var word [4]byte
	next := func(what string) (uint32, error) {
		n, err := io.ReadFull(r, word[:])
		offset += n
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return 0, &FormatError{Path: path, Got: fmt.Sprintf("the end after byte %d", offset), Want: what,
				Hint: "the file is cut off; fetch it again", Err: io.ErrUnexpectedEOF}
		}
		if err != nil {
			return 0, damaged(path, fmt.Sprintf("damage after byte %d of the content", offset), err)
		}
		return binary.BigEndian.Uint32(word[:]), nil
	}
	magic, err := next("a magic number of 4 bytes")
	if err != nil {
		return nil, 0, err
	}
	if err := checkMagic(path, magic, want); err != nil {
		return nil, 0, err
	}
	size := uint64(1)
	for i := range int(magic & 0xff) {
		d, err := next(fmt.Sprintf("dimension %d", i))
		if err != nil {
			return nil, 0, err
		}
		dims = append(dims, int(d))
		if d == 0 || uint64(d) > maxIDXSize || size*uint64(d) > maxIDXSize {
			return nil, 0, &FormatError{Path: path, Got: fmt.Sprintf("dimensions %v", dims),
				Want: fmt.Sprintf("sizes from 1 on with a "+
					"product of at most %d", maxIDXSize), Hint: "this is not a data set, or its header is damaged"}
		}
		size *= uint64(d)
	}
	return dims, offset, nil
}

func checkMagic(path string, got, want uint32) error {
	e := &FormatError{Path: path, Got: fmt.Sprintf("magic %#x at byte 0", got), Want: fmt.Sprintf("%#x", want)}
	kind, rank := byte(got>>8), got&0xff
	switch {
	case want == 0:
		e.Want = "0x801 (labels) or 0x803 (images)"
	case got == idxLabels && want == idxImages:
		e.Hint = "this is a label file; pass the images"
	case got == idxImages && want == idxLabels:
		e.Hint = "this is an image file; pass the labels"
	}
	switch {
	case got>>16 != 0:
		e.Hint = "this is not an IDX file"
	case kind != idxUint8 && idxTypes[kind] != "":
		e.Hint = "its elements are of type " + idxTypes[kind] + "; only unsigned bytes are read"
	case kind != idxUint8:
		e.Hint = "this is not an IDX file"
	case rank == 0 || rank > maxIDXRank:
		e.Hint = fmt.Sprintf("rank %d; only 1 to %d are read", rank, maxIDXRank)
	case want == 0 || got == want:
		return nil
	}
	return e
}

// damaged distinguishes a malformed file from an I/O error: only errors of gzip and flate are
// format errors.
func damaged(path, got string, err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &corrupt) {
		return &FormatError{Path: path, Got: got, Want: "intact gzip data",
			Hint: err.Error() + "; fetch the file again", Err: err}
	}
	return fmt.Errorf("data: reading %s: %w", path, err)
}
