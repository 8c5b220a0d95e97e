package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// value is an integer, or bytes that are valid until the next page.
type value struct {
	n int64
	b []byte
}

// values iterates over the non-null values of a page.
type values interface{ next() (value, error) }

// encoding is the encoding of a page's values.
type encoding int64

const (
	plainValues     encoding = 0
	oldDictionary   encoding = 2
	levelRuns       encoding = 3
	deltaIntegers   encoding = 5
	deltaLengths    encoding = 6
	deltaStrings    encoding = 7
	dictionaryPlace encoding = 8
)

func (e encoding) String() string {
	names := [...]string{"PLAIN", "encoding 1", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED",
		"DELTA_LENGTH_BYTE_ARRAY",
		"DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"}
	if e < 0 || int(e) >= len(names) {
		return fmt.Sprintf("encoding %d", int64(e))
	}
	return names[e]
}

// newValues reads the values of a page.
func newValues(e encoding, p physical, b []byte, dictionary []value) (values, error) {
	switch isBytes := p == byteArrays; {
	case e == plainValues && isBytes:
		return &plainBytes{b}, nil
	case e == plainValues:
		return &plainInts{b, p}, nil
	case e == dictionaryPlace || e == oldDictionary:
		return newPlaces(b, dictionary)
	case e == deltaIntegers && !isBytes:
		d, err := newDeltas(b)
		return &deltaInts{d, p}, err
	case e == deltaLengths && isBytes:
		return newSized(b)
	case e == deltaStrings && isBytes:
		return newShared(b)
	}
	return nil, unknown{fmt.Sprintf("the encoding %s of %s", e, p)}
}

// plainBytes are values with preceding lengths.
type plainBytes struct{ b []byte }

func (v *plainBytes) next() (value, error) {
	if len(v.b) < 4 {
		return value{}, io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint32(v.b)
	if uint64(n) > uint64(len(v.b)-4) {
		return value{}, io.ErrUnexpectedEOF
	}
	b := v.b[4 : 4+n : 4+n]
	v.b = v.b[4+n:]
	return value{b: b}, nil
}

// plainInts are fixed-width integers.
type plainInts struct {
	b    []byte
	kind physical
}

func (v *plainInts) next() (out value, err error) {
	size := 4
	if v.kind == int64Values {
		size = 8
	}
	if len(v.b) < size {
		return value{}, io.ErrUnexpectedEOF
	}
	if size == 8 {
		out.n = int64(binary.LittleEndian.Uint64(v.b))
	} else {
		out.n = int64(int32(binary.LittleEndian.Uint32(v.b)))
	}
	v.b = v.b[size:]
	return out, nil
}

// places are indices into a dictionary.
type places struct {
	*runs
	dictionary []value
}

func newPlaces(b []byte, dictionary []value) (*places, error) {
	if len(b) == 0 {
		return &places{&runs{}, dictionary}, nil // only nulls
	}
	r, err := newRuns(b[1:], int(b[0]))
	return &places{r, dictionary}, err
}

func (v *places) next() (value, error) {
	i, err := v.runs.next()
	if err != nil {
		return value{}, err
	}
	if int64(i) >= int64(len(v.dictionary)) {
		return value{}, fmt.Errorf("value %d of a dictionary of %d", i, len(v.dictionary))
	}
	return v.dictionary[i], nil
}

// deltaInts are integers as differences, which wrap around at 32 bits for 32-bit integers.
type deltaInts struct {
	*deltas
	kind physical
}

func (v *deltaInts) next() (value, error) {
	n, err := v.deltas.next()
	if v.kind == int32Values {
		n = int64(int32(n))
	}
	return value{n: n}, err
}

// sized are all lengths, then all values.
type sized struct {
	lengths *deltas
	b       []byte
}

func newSized(b []byte) (*sized, error) {
	lengths, err := newDeltas(b)
	if err != nil {
		return nil, err
	}
	again := *lengths
	rest, err := again.rest()
	return &sized{lengths, rest}, err
}

func (v *sized) next() (value, error) {
	n, err := v.lengths.next()
	if err != nil {
		return value{}, err
	}
	if n < 0 || n > int64(len(v.b)) {
		return value{}, io.ErrUnexpectedEOF
	}
	b := v.b[:n:n]
	v.b = v.b[n:]
	return value{b: b}, nil
}

// shared are values with a prefix of the previous value: all prefix lengths, then the suffixes.
type shared struct {
	same *deltas
	more *sized
	last []byte
}

func newShared(b []byte) (*shared, error) {
	same, err := newDeltas(b)
	if err != nil {
		return nil, err
	}
	again := *same
	rest, err := again.rest()
	if err != nil {
		return nil, err
	}
	more, err := newSized(rest)
	return &shared{same: same, more: more}, err
}

func (v *shared) next() (value, error) {
	n, err := v.same.next()
	if err != nil {
		return value{}, err
	}
	end, err := v.more.next()
	if err != nil {
		return value{}, err
	}
	if n < 0 || n > int64(len(v.last)) || n+int64(len(end.b)) > maxPage {
		return value{}, errors.New("a value that goes on from less than it claims, or too large")
	}
	v.last = append(v.last[:n:n], end.b...)
	return value{b: v.last}, nil
}
