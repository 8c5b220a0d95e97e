package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"unicode/utf8"
)

// Info describes one tensor of a [File].
type Info struct {
	Name   string
	DType  DType
	Shape  []int // row-major; empty for a scalar
	Offset int64 // position of the first byte in the file
	Size   int64 // number of bytes
}

// maxDimensions is the largest number of dimensions of a tensor, which is PyTorch's.
const maxDimensions = 64

// byteSize returns the bytes of a tensor; ok is false if the type is unknown, the product
// overflows, or the size is not a whole number of bytes.
func byteSize(t DType, shape []uint64) (size uint64, ok bool) {
	width, ok := bitsOf[t]
	if !ok {
		return 0, false
	}
	n := uint64(1)
	for _, s := range shape {
		hi, lo := bits.Mul64(n, s)
		if hi != 0 || s > math.MaxInt {
			return 0, false
		}
		n = lo
	}
	hi, lo := bits.Mul64(n, width)
	return lo / 8, hi == 0 && lo%8 == 0
}

// header is a parsed header: the tensors in the order of their values.
type header struct {
	tensors  []Info
	metadata map[string]string
}

// parseHeader parses the JSON header of a file whose values start at byte base and are data bytes
// long, and checks that the tensors tile the values without gaps or overlaps, as the format
// requires.
func parseHeader(text []byte, base, data int64) (*header, error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, errors.New("header does not start with '{': this is not a safetensors file")
	}
	if !utf8.Valid(text) {
		return nil, errors.New("header is not valid UTF-8")
	}
	h := &header{metadata: map[string]string{}}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err := object(dec, func(name string) error {
		if name == metadataKey {
			return h.readMetadata(dec)
		}
		return h.readTensor(dec, name, base)
	})
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if rest := bytes.Trim(text[dec.InputOffset():], " "); len(rest) > 0 {
		return nil, fmt.Errorf("header: byte 0x%02x after its closing brace, want only spaces", rest[0])
	}
	return h, h.tile(base, data)
}

// tile sorts the tensors by offset and checks that they cover the data bytes from base on exactly
// once.
func (h *header) tile(base, data int64) error {
	sort.SliceStable(h.tensors, func(i, j int) bool {
		a, b := &h.tensors[i], &h.tensors[j]
		return a.Offset < b.Offset || a.Offset == b.Offset && a.Size < b.Size // empty tensors first
	})
	end := base
	for i := range h.tensors {
		t := &h.tensors[i]
		switch {
		case t.Offset > end:
			return fmt.Errorf("tensor %q: starts at data byte %d, want %d: bytes before it belong to no tensor", t.Name,
				t.Offset-base, end-base)
		case t.Offset < end:
			return fmt.Errorf("tensor %q: starts at data byte %d, want %d: it overlaps the tensor before it", t.Name,
				t.Offset-base, end-base)
		case t.Size > base+data-end:
			return fmt.Errorf("tensor %q: ends at data byte %d, the file has %d: it was cut short", t.Name,
				end-base+t.Size, data)
		}
		end += t.Size
	}
	if end != base+data {
		return fmt.Errorf("the file has %d bytes of data, its tensors account for %d: the rest belongs to no tensor",
			data, end-base)
	}
	return nil
}

// readMetadata reads the object of strings.
func (h *header) readMetadata(dec *json.Decoder) error {
	return object(dec, func(key string) error {
		tok, err := dec.Token()
		if err != nil {
			return noEOF(err)
		}
		v, ok := tok.(string)
		if !ok {
			return fmt.Errorf("metadata %q: found %v, want a string", key, tok)
		}
		h.metadata[key] = v
		return nil
	})
}

// readTensor reads one tensor's description. Unknown fields are ignored, as in the reference
// reader.
func (h *header) readTensor(dec *json.Decoder, name string, base int64) error {
	var dtype DType
	var shape, offsets []uint64
	fields := 0
	err := object(dec, func(field string) (err error) {
		switch field {
		case "dtype":
			fields++
			dtype, err = readDType(dec)
		case "shape":
			fields++
			shape, err = readInts(dec)
		case "data_offsets":
			fields++
			offsets, err = readInts(dec)
		default:
			err = dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", field, noEOF(err))
		}
		return nil
	})
	if err == nil && fields < 3 {
		err = errors.New("dtype, shape or data_offsets is missing")
	}
	if err == nil {
		err = h.add(name, dtype, shape, offsets, base)
	}
	if err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	return nil
}

// add validates one description and stores it.
func (h *header) add(name string, dtype DType, shape, offsets []uint64, base int64) error {
	if len(offsets) != 2 || offsets[0] > offsets[1] || offsets[1] > uint64(math.MaxInt64-base) {
		return fmt.Errorf("data_offsets: %v are not a begin and an end", offsets)
	}
	if len(shape) > maxDimensions {
		return fmt.Errorf("shape has %d dimensions, want at most %d", len(shape), maxDimensions)
	}
	size, ok := byteSize(dtype, shape)
	if !ok {
		return fmt.Errorf("shape %v of %s is no whole number of bytes that a file could hold", shape, dtype)
	}
	if size != offsets[1]-offsets[0] {
		return fmt.Errorf("data_offsets: %v are %d bytes, shape %v of %s needs %d", offsets, offsets[1]-offsets[0],
			shape, dtype, size)
	}
	info := Info{Name: name, DType: dtype, Shape: make([]int, len(shape)), Offset: base + int64(offsets[0]),
		Size: int64(size)}
	for i, s := range shape {
		info.Shape[i] = int(s)
	}
	h.tensors = append(h.tensors, info)
	return nil
}

// readDType reads the name of an element type.
func readDType(dec *json.Decoder) (DType, error) {
	tok, err := dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if _, known := bitsOf[DType(s)]; !ok || !known {
		return "", fmt.Errorf("found %v, want an element type such as \"F32\"", tok)
	}
	return DType(s), nil
}

// readInts reads an array of unsigned integers, written without sign, fraction or exponent.
func readInts(dec *json.Decoder) ([]uint64, error) {
	if tok, err := dec.Token(); err != nil || tok != json.Delim('[') {
		return nil, unexpected(tok, err, "an array")
	}
	ints := []uint64{}
	for dec.More() {
		tok, err := dec.Token()
		n, ok := tok.(json.Number)
		if err != nil || !ok {
			return nil, unexpected(tok, err, "an integer")
		}
		v, err := strconv.ParseUint(string(n), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("found %s, want an integer from 0 to 2^64-1", n)
		}
		ints = append(ints, v)
	}
	_, err := dec.Token()
	return ints, err
}

// object reads an object and calls field at the value of each key, which field must consume. Unlike
// encoding/json it rejects duplicate keys.
func object(dec *json.Decoder, field func(key string) error) error {
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return unexpected(tok, err, "an object")
	}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return noEOF(err)
		}
		key := tok.(string) // the decoder accepts only a string here
		if seen[key] {
			return fmt.Errorf("key %q is given twice", key)
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return noEOF(err)
}

// unexpected returns the error for a token of the wrong kind.
func unexpected(tok json.Token, err error, want string) error {
	if err != nil {
		return noEOF(err)
	}
	return fmt.Errorf("found %v, want %s", tok, want)
}

// noEOF replaces io.EOF by an error, since callers could take it for success.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
