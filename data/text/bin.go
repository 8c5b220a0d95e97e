package text

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"github.com/edsrzf/mmap-go"

	"fspda/internal/bounded"
	"fspda/internal/wholefile"
)

// The header of llm.c's files: 256 numbers of int32, of which the first three are set.
const (
	headerBytes   = 1024
	headerMagic   = 20240520 // tokens of 16 bits
	headerMagic32 = 20240801 // tokens of 32 bits
	headerVersion = 1
)

// BinFile is a file of tokens, mapped into memory.
type BinFile struct {
	Tokens  []uint16 // read-only; nil after Close
	Header  bool     // the file has llm.c's header
	mapping mmap.MMap
}

// OpenBin maps a file of tokens: nanoGPT's, little-endian uint16 alone, or llm.c's, which have a
// header of 1024 bytes. It returns a *[FormatError] for an empty file, an odd size, or a header that
// does not fit the size.
func OpenBin(path string) (f *BinFile, err error) {
	file, err := bounded.Open(path)
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	defer file.Close() // the mapping stays valid
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	var head [12]byte
	if _, err := file.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("text: %w", err)
	}
	f = &BinFile{}
	from, err := checkBin(path, head, info.Size())
	if err != nil {
		return nil, err
	}
	f.Header = from > 0
	if f.mapping, err = mmap.Map(file, mmap.RDONLY, 0); err != nil {
		return nil, fmt.Errorf("text: %s cannot be mapped into memory: %w", path, err)
	}
	// the offset is even, and a mapping begins at a page
	f.Tokens = littleEndian(f.mapping[from:])
	return f, nil
}

// checkBin returns where the tokens of a file begin, by its first bytes; a shorter file has zeros
// there.
func checkBin(path string, head [12]byte, size int64) (from int, err error) {
	wrong := func(got, want, hint string, args ...any) error {
		return &FormatError{Path: path, Got: fmt.Sprintf(got, args...), Want: want, Hint: hint}
	}
	if size == 0 {
		return 0, wrong("it is empty", "tokens of two bytes each", "")
	}
	if size%2 != 0 {
		return 0, wrong("it has %d bytes, an odd number", "tokens of two bytes each",
			"is it a text? fspda data prepare text writes files of tokens", size)
	}
	magic, version := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	count := int64(binary.LittleEndian.Uint32(head[8:]))
	switch {
	case magic == headerMagic32:
		return 0, wrong("its header says llm.c, tokens of 32 bits", "tokens of 16 bits",
			"a vocabulary of more than 65,536 tokens is not supported")
	case magic != headerMagic:
		return 0, nil
	case size < headerBytes:
		return 0, wrong("it begins as a file of llm.c and has %d bytes", "a header of 1024 bytes",
			"was the file cut off?", size)
	case version != headerVersion:
		return 0, wrong("its header says llm.c, version %d", "version 1", "", version)
	case count != (size-headerBytes)/2:
		return 0, wrong("its header says %d tokens, but %d follow", "as many as the header says",
			"was the file cut off?", count, (size-headerBytes)/2)
	case count == 0:
		return 0, wrong("it has no tokens", "tokens after the header", "")
	}
	return headerBytes, nil
}

// littleEndian returns numbers of two bytes without a copy where the machine stores them so.
func littleEndian(b []byte) []uint16 {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
	}
	tokens := make([]uint16, len(b)/2)
	for i := range tokens {
		tokens[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return tokens
}

func (f *BinFile) Close() error {
	f.Tokens = nil
	if f.mapping == nil {
		return nil
	}
	err := f.mapping.Unmap()
	f.mapping = nil
	return err
}

// WriteBin writes a file of tokens as nanoGPT reads it. It replaces a file in one step.
func WriteBin(path string, tokens []uint16) error {
	return wholefile.PublishBy(path, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<16)
		for _, t := range tokens {
			_ = b.WriteByte(byte(t)) // Flush returns the error
			_ = b.WriteByte(byte(t >> 8))
		}
		return b.Flush()
	})
}

// notExist reports whether there is no such file.
func notExist(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
