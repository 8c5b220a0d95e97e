package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// metadataKey is the reserved name in a header.
const metadataKey = "__metadata__"

// maxHeader is the longest header the format allows, in bytes.
const maxHeader = 100_000_000

// chunk is the number of elements encoded at a time: large enough for few system calls, small
// enough for the cache.
const chunk = 8192

// Tensor is one named tensor to write.
type Tensor struct {
	Name  string // any valid UTF-8 but "__metadata__"; unique within a file
	Shape []int  // row-major; empty for a scalar; a 0 anywhere makes an empty tensor
	// []float32, []float64, []int64, []uint64, []uint8 or a Lazy, as long as the product of Shape
	Values any
}

// Lazy are float32 values that are fetched when they are written, so that a file may be larger than
// memory.
type Lazy struct {
	Len int
	Get func() []float32 // called once; the result is valid until the next call of another Get
}

// Write writes a complete safetensors file with the tensors in the order given. metadata may be
// nil; it is written with sorted keys, so that equal arguments give equal bytes. The header is
// padded with spaces to a multiple of 8 bytes; a tensor is aligned to its element size if all
// tensors before it have a multiple of that size, which holds for tensors of one type and for wider
// types first.
//
// It validates all arguments before it writes the first byte. An error names the tensor concerned.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	header, err := encodeHeader(tensors, metadata)
	if err != nil {
		return fmt.Errorf("safetensors: write: %w", err)
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("safetensors: write header: %w", err)
	}
	buf := make([]byte, 8*chunk)
	for _, t := range tensors {
		if err := writeValues(w, buf, t.Values); err != nil {
			return fmt.Errorf("safetensors: write tensor %q: %w", t.Name, err)
		}
	}
	return nil
}

// encodeHeader returns the length prefix and the padded header.
func encodeHeader(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(metadata) > 0 {
		if err := checkMetadata(metadata); err != nil {
			return nil, err
		}
		writeJSON(&b, metadataKey, metadata)
	}
	seen := make(map[string]bool, len(tensors))
	var end uint64
	for _, t := range tensors {
		dtype, size, err := check(t, seen)
		if err != nil {
			return nil, err
		}
		if b.Len() > 9 {
			b.WriteByte(',')
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{} // a scalar's shape is [], not null
		}
		writeJSON(&b, t.Name, entry{dtype, shape, [2]uint64{end, end + size}})
		end += size
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - 8
	if n > maxHeader {
		return nil, fmt.Errorf("header is %d bytes, the format allows %d: write fewer tensors or less metadata", n,
			maxHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

// entry is the description of a tensor in the header.
type entry struct {
	DType   DType     `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// check returns the element type and the size in bytes of a tensor to write, and adds its name to
// seen.
func check(t Tensor, seen map[string]bool) (DType, uint64, error) {
	switch {
	case t.Name == metadataKey:
		return "", 0, fmt.Errorf("tensor %q: the name is reserved: pass the strings as metadata", t.Name)
	case !utf8.ValidString(t.Name):
		return "", 0, fmt.Errorf("tensor %q: the name is not valid UTF-8", t.Name)
	case seen[t.Name]:
		return "", 0, fmt.Errorf("tensor %q: given twice: names must be unique", t.Name)
	}
	seen[t.Name] = true
	dtype, n, ok := dtypeOf(t.Values)
	if !ok {
		return "", 0, fmt.Errorf("tensor %q: values are %T, want []float32, []float64, []int64, []uint64, []uint8 "+
			"or Lazy", t.Name, t.Values)
	}
	shape := make([]uint64, len(t.Shape))
	for i, s := range t.Shape {
		if s < 0 {
			return "", 0, fmt.Errorf("tensor %q: shape %v has a negative dimension", t.Name, t.Shape)
		}
		shape[i] = uint64(s)
	}
	size, ok := byteSize(dtype, shape)
	if want := uint64(n) * bitsOf[dtype] / 8; !ok || size != want {
		return "", 0, fmt.Errorf("tensor %q: shape %v does not match its %d values", t.Name, t.Shape, n)
	}
	return dtype, size, nil
}

// checkMetadata rejects strings that JSON would change.
func checkMetadata(metadata map[string]string) error {
	for k, v := range metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("metadata %q: key or value is not valid UTF-8", k)
		}
	}
	return nil
}

// writeJSON appends "key":value. Neither can fail to encode: they hold strings and integers only.
func writeJSON(b *bytes.Buffer, key string, value any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // names stay readable
	for i, v := range []any{key, value} {
		if err := enc.Encode(v); err != nil {
			panic("safetensors: " + err.Error())
		}
		b.Truncate(b.Len() - 1) // the encoder's newline
		if i == 0 {
			b.WriteByte(':')
		}
	}
}

// writeValues writes the values of a tensor through buf, which has room for a chunk of the widest
// type.
func writeValues(w io.Writer, buf []byte, values any) error {
	switch v := values.(type) {
	case []uint8:
		_, err := w.Write(v)
		return err
	case Lazy:
		got := v.Get()
		if len(got) != v.Len {
			return fmt.Errorf("%d values, want %d", len(got), v.Len)
		}
		values = got
	}
	_, n, _ := dtypeOf(values)
	for lo := 0; lo < n; lo += chunk {
		if _, err := w.Write(encode(buf, slice(values, lo, min(lo+chunk, n)))); err != nil {
			return err
		}
	}
	return nil
}
