package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Kind is the type of a column's values.
type Kind uint8

// Kinds of columns. Bytes and String may have offsets of 32 or 64 bits.
const (
	Other Kind = iota // cannot be read
	Int
	Bool
	Bytes
	String
)

func (k Kind) String() string {
	return [...]string{"of another type", "integers", "booleans", "bytes", "strings"}[k]
}

// Field describes a column.
type Field struct {
	Name   string
	Kind   Kind
	Bits   int  // bits of an integer or an offset: 8, 16, 32 or 64
	Signed bool // the integers are signed
	Null   bool // rows may be without a value
}

// Column holds a column of one batch. A column that was read lies in the memory of the file.
type Column struct {
	Field

	n       int
	valid   [][]byte // Bitmaps of the column and of the structs around it: a row is null where a bit is 0.
	offsets []byte   // n+1 offsets into data, for Bytes and String.
	data    []byte
}

func (c *Column) Len() int { return c.n }

// IsNull reports whether row i has no value.
func (c *Column) IsNull(i int) bool {
	return slices.ContainsFunc(c.valid, func(v []byte) bool { return v[i/8]>>(i%8)&1 == 0 })
}

// Int returns row i of a column of integers or booleans.
func (c *Column) Int(i int) int64 {
	if c.Kind == Bool {
		return int64(c.data[i/8] >> (i % 8) & 1)
	}
	var v uint64
	switch c.Bits {
	case 8:
		v = uint64(c.data[i])
	case 16:
		v = uint64(binary.LittleEndian.Uint16(c.data[2*i:]))
	case 32:
		v = uint64(binary.LittleEndian.Uint32(c.data[4*i:]))
	default:
		v = binary.LittleEndian.Uint64(c.data[8*i:])
	}
	if c.Signed {
		shift := 64 - c.Bits
		return int64(v<<shift) >> shift
	}
	return int64(v)
}

// Bytes returns row i of a column of bytes or strings, in the memory of the file.
func (c *Column) Bytes(i int) []byte {
	from, to := c.offset(i), c.offset(i+1)
	return c.data[from:to:to]
}

func (c *Column) offset(i int) int64 {
	if c.Bits == 64 {
		return int64(binary.LittleEndian.Uint64(c.offsets[8*i:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(c.offsets[4*i:])))
}

// check checks that all n rows lie within the buffers.
func (c *Column) check() error {
	for _, v := range c.valid {
		if len(v) < (c.n+7)/8 {
			return errors.New("a bitmap that is too short")
		}
	}
	size := c.Bits / 8
	switch c.Kind {
	case Bool:
		if len(c.data) < (c.n+7)/8 {
			return fmt.Errorf("%d booleans in %d bytes", c.n, len(c.data))
		}
	case Int:
		if len(c.data)/size < c.n {
			return fmt.Errorf("%d integers of %d bits in %d bytes", c.n, c.Bits, len(c.data))
		}
	case Bytes, String:
		if c.n == 0 {
			return nil
		}
		if len(c.offsets)/size < c.n+1 {
			return fmt.Errorf("%d offsets of %d bits in %d bytes", c.n+1, c.Bits, len(c.offsets))
		}
		last := int64(0)
		for i := range c.n + 1 {
			at := c.offset(i)
			if at < last || at > int64(len(c.data)) {
				return fmt.Errorf("offset %d at row %d, want %d to %d", at, i, last, len(c.data))
			}
			last = at
		}
	}
	return nil
}

// AppendInt appends a row to a column of integers of 32 bits that is to be written.
func (c *Column) AppendInt(v int32) {
	c.data = binary.LittleEndian.AppendUint32(c.data, uint32(v))
	c.n++
}

// AppendBytes appends a row to a column of bytes or strings with offsets of 32 bits that is to be
// written. A column holds less than 2 GiB.
func (c *Column) AppendBytes(b []byte) {
	if c.n == 0 {
		c.offsets = make([]byte, 4, 4096)
	}
	c.data = append(c.data, b...)
	c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(len(c.data)))
	c.n++
}

// Reset removes all rows and keeps the memory.
func (c *Column) Reset() { c.n, c.offsets, c.data = 0, c.offsets[:0], c.data[:0] }
