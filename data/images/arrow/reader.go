package arrow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

const magic = "ARROW1"

// Types of messages (Message.fbs, union MessageHeader).
const (
	headerSchema = 1
	headerBatch  = 3
)

// File is a table in memory. It is immutable.
type File struct {
	schema *schema
	rest   []byte // the batches
}

// Recognise reports whether a file starts as a file or a stream of Arrow does.
func Recognise(start []byte) bool {
	return bytes.HasPrefix(start, []byte(magic)) || bytes.HasPrefix(start, []byte("\xff\xff\xff\xff"))
}

// Open reads the schema of a file or a stream.
func Open(b []byte) (f *File, err error) {
	defer recovered(&err)
	if bytes.HasPrefix(b, []byte(magic)) {
		b = b[min(8, len(b)):]
	}
	m, rest, err := nextMessage(b)
	if err != nil {
		return nil, err
	}
	if m.kind != headerSchema {
		return nil, errors.New("no schema at its beginning")
	}
	s, err := parseSchema(&m.header)
	if err != nil {
		return nil, err
	}
	return &File{schema: s, rest: rest}, nil
}

// recovered turns a panic of the flatbuffers library, which does not check references, into an
// error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("a reference out of bounds: %v", p)
	}
}

// Fields lists the columns, also columns of kind Other.
func (f *File) Fields() []Field {
	all := make([]Field, len(f.schema.leaves))
	for i, l := range f.schema.leaves {
		all[i] = l.Field
	}
	return all
}

// Metadata returns a text that was stored in the file, or "".
func (f *File) Metadata(key string) string { return f.schema.metadata[key] }

// Batches returns the given columns, by their index in Fields, of every batch.
func (f *File) Batches(columns ...int) (all [][]Column, err error) {
	defer recovered(&err)
	for rest := f.rest; ; {
		var m message
		if m, rest, err = nextMessage(rest); err != nil || m.kind == 0 {
			return all, err
		}
		if m.kind != headerBatch {
			return nil, fmt.Errorf("a message of type %d, want a batch without a dictionary", m.kind)
		}
		batch, err := f.schema.batch(&m, columns)
		if err != nil {
			return nil, fmt.Errorf("batch %d: %w", len(all), err)
		}
		all = append(all, batch)
	}
}

// message is an encapsulated message. Kind 0 is the end of a stream.
type message struct {
	kind   byte
	header flatbuffers.Table
	body   []byte
}

// nextMessage splits off the first message. A stream may end without a mark.
func nextMessage(b []byte) (m message, rest []byte, err error) {
	if len(b) == 0 {
		return m, nil, nil
	}
	if len(b) < 8 || binary.LittleEndian.Uint32(b) != 1<<32-1 {
		return m, nil, errors.New("no message where one is expected")
	}
	size := uint64(binary.LittleEndian.Uint32(b[4:]))
	if b = b[8:]; size == 0 {
		return m, nil, nil
	}
	if size > uint64(len(b)) || size < 8 {
		return m, nil, fmt.Errorf("a message of %d bytes with %d left", size, len(b))
	}
	head := b[:size:size]
	b = b[size:]
	t := flatbuffers.Table{Bytes: head, Pos: flatbuffers.GetUOffsetT(head)}
	n := t.GetInt64Slot(10, 0)
	if n < 0 || n > int64(len(b)) {
		return m, nil, fmt.Errorf("a message with %d bytes of data and %d left", n, len(b))
	}
	m = message{kind: t.GetByteSlot(6, 0), body: b[:n:n]}
	t.Union(&m.header, flatbuffers.UOffsetT(t.Offset(8)))
	return m, b[n:], nil
}

func (s *schema) batch(m *message, columns []int) ([]Column, error) {
	t := &m.header
	rows, nodes, buffers := t.GetInt64Slot(4, 0), slot(t, 1)-t.Pos, slot(t, 2)-t.Pos
	switch {
	case t.Offset(10) != 0:
		return nil, errors.New("it is compressed; write the file without compression")
	case s.buffers == 0 || rows == 0:
		return make([]Column, len(columns)), nil
	case rows < 0 || rows > 1<<31 || t.VectorLen(nodes) != s.nodes || t.VectorLen(buffers) != s.buffers:
		return nil, fmt.Errorf("%d rows, and other columns than in the schema", rows)
	}
	out := make([]Column, len(columns))
	for i, k := range columns {
		l := s.leaves[k]
		c := Column{Field: l.Field, n: int(rows)}
		if n := t.GetInt64(t.Vector(nodes) + flatbuffers.UOffsetT(16*l.node)); n != rows {
			return nil, fmt.Errorf("column %s of %d rows, want %d", l.Name, n, rows)
		}
		var err error
		buffer := func(i int) []byte {
			at := t.Vector(buffers) + flatbuffers.UOffsetT(16*i)
			from, size := t.GetInt64(at), t.GetInt64(at+8)
			if from < 0 || size < 0 || from > int64(len(m.body)) || size > int64(len(m.body))-from {
				err = fmt.Errorf("column %s: %d bytes at %d of %d", l.Name, size, from, len(m.body))
				return nil
			}
			return m.body[from : from+size : from+size]
		}
		for _, b := range l.bitmaps {
			if v := buffer(b); len(v) > 0 {
				c.valid = append(c.valid, v)
			}
		}
		at := l.buffer
		if c.Kind == Bytes || c.Kind == String {
			c.offsets = buffer(at)
			at++
		}
		if c.Kind != Other {
			c.data = buffer(at)
		}
		if err == nil {
			if err = c.check(); err != nil {
				err = fmt.Errorf("column %s: %w", l.Name, err)
			}
		}
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}
