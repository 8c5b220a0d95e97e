package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"

	"fspda/internal/bounded"
)

// File is a safetensors file with a validated header.
type File struct {
	name  string // name that errors give
	r     io.ReaderAt
	close func() error
	*header
	index map[string]int // name → position in tensors
}

// Open opens the file at path and checks its header. The caller must close it.
func Open(path string) (*File, error) {
	f, err := bounded.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("safetensors: open %s: %w", path, err)
	}
	file, err := read(path, f, st.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	file.close = f.Close
	return file, nil
}

// Read validates the header of a file of size bytes in r. The File keeps r.
func Read(r io.ReaderAt, size int64) (*File, error) { return read("input", r, size) }

func read(name string, r io.ReaderAt, size int64) (*File, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", name, err)
	}
	f := &File{name: name, r: r, close: func() error { return nil }, header: h,
		index: make(map[string]int, len(h.tensors))}
	for i, t := range h.tensors {
		f.index[t.Name] = i
	}
	return f, nil
}

// readHeader reads and validates everything before the values. It limits the header length to the
// size of the file.
func readHeader(r io.ReaderAt, size int64) (*header, error) {
	if size < 8 {
		return nil, fmt.Errorf("file is %d bytes, want at least the 8 of the header length", size)
	}
	var prefix [8]byte
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, fmt.Errorf("header length: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader {
		return nil, fmt.Errorf("header length is %d, the format allows %d: this is not a safetensors "+
			"file", n, maxHeader)
	}
	if n > uint64(size-8) {
		return nil, fmt.Errorf("header length is %d, only %d bytes follow it: the file was cut short", n, size-8)
	}
	text := make([]byte, n)
	if err := readFull(r, text, 8); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return parseHeader(text, 8+int64(n), size-8-int64(n))
}

// readFull fills dst from offset on. io.EOF together with all bytes is success, which io.ReaderAt
// allows.
func readFull(r io.ReaderAt, dst []byte, offset int64) error {
	n, err := r.ReadAt(dst, offset)
	switch {
	case n == len(dst):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close closes a file that came from [Open]; after [Read] it does nothing.
func (f *File) Close() error {
	if err := f.close(); err != nil {
		return fmt.Errorf("safetensors: close %s: %w", f.name, err)
	}
	return nil
}

// Metadata returns a copy of the metadata strings; empty if there are none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Tensors describes all tensors in the order of their values. The caller must not change it.
func (f *File) Tensors() []Info { return f.tensors }

// Info describes the named tensor; ok is false if it does not exist.
func (f *File) Info(name string) (info Info, ok bool) {
	i, ok := f.index[name]
	if !ok {
		return Info{}, false
	}
	return f.tensors[i], true
}

// Section returns the raw bytes of a tensor of any element type, little-endian and row-major.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, ok := f.Info(name)
	if !ok {
		return nil, f.missing(name)
	}
	return io.NewSectionReader(f.r, t.Offset, t.Size), nil
}

// Load returns the values of a tensor, row-major. Its element type must be T: there is no
// conversion.
func Load[T Element](f *File, name string) ([]T, error) {
	t, ok := f.Info(name)
	if !ok {
		return nil, f.missing(name)
	}
	want, _, _ := dtypeOf([]T(nil))
	if t.DType != want {
		return nil, f.wrongType(t, want)
	}
	dst := make([]T, t.Size*8/int64(bitsOf[want]))
	return dst, LoadInto(f, name, dst)
}

// LoadInto fills dst with the values of a tensor, which must have its element type and exactly its
// number of elements; the shape may differ. After an error the contents of dst are undefined.
func LoadInto[T Element](f *File, name string, dst []T) error {
	t, ok := f.Info(name)
	if !ok {
		return f.missing(name)
	}
	want, _, _ := dtypeOf(dst)
	if t.DType != want {
		return f.wrongType(t, want)
	}
	width := int64(bitsOf[want] / 8)
	if int64(len(dst)) != t.Size/width {
		return fmt.Errorf("safetensors: %s: tensor %q has %d elements (shape %v), want %d", f.name, name, t.Size/width,
			t.Shape, len(dst))
	}
	buf := make([]byte, min(t.Size, chunk*width))
	for lo := 0; lo < len(dst); lo += chunk {
		part := dst[lo:min(lo+chunk, len(dst))]
		bytes := buf[:int64(len(part))*width]
		if err := readFull(f.r, bytes, t.Offset+int64(lo)*width); err != nil {
			return fmt.Errorf("safetensors: %s: tensor %q, from element %d: %w", f.name, name, lo, err)
		}
		decode(part, bytes)
	}
	return nil
}

func (f *File) missing(name string) error {
	return fmt.Errorf("safetensors: %s: no tensor %q among its %d", f.name, name, len(f.tensors))
}

func (f *File) wrongType(t Info, want DType) error {
	return fmt.Errorf("safetensors: %s: tensor %q is %s, want %s", f.name, t.Name, t.DType, want)
}
