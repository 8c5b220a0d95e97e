package arrow

import (
	"encoding/binary"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

const (
	version5  = 4  // version of the metadata (Schema.fbs, MetadataVersion)
	alignment = 64 // alignment that the specification recommends for buffers
)

// Writer writes a file of columns in which every row has a value and which are not nested. Integers
// and offsets have 32 bits.
type Writer struct {
	w        io.Writer
	fields   []Field
	metadata [][2]string
	at       int64 // bytes written
	blocks   []block
}

// block locates a batch.
type block struct {
	offset int64
	head   int32
	body   int64
}

// NewWriter writes the schema. Its metadata are pairs of a key and a value.
func NewWriter(w io.Writer, fields []Field, metadata [][2]string) (*Writer, error) {
	out := &Writer{w: w, fields: fields, metadata: metadata}
	if err := out.write([]byte(magic + "\x00\x00")); err != nil {
		return nil, err
	}
	b := flatbuffers.NewBuilder(1024)
	_, err := out.message(b, headerSchema, out.schema(b), 0)
	return out, err
}

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.at += int64(n)
	return err
}

// pad writes zeros up to a multiple of n.
func (w *Writer) pad(n int64) error { return w.write(make([]byte, -w.at&(n-1))) }

func (w *Writer) Size() int64 { return w.at }

// Write writes a batch: the columns of NewWriter, which have equally many rows.
func (w *Writer) Write(columns ...*Column) error {
	rows := int64(columns[0].n)
	b := flatbuffers.NewBuilder(1024)
	b.StartVector(16, len(columns), 8)
	for range columns {
		b.Prep(8, 16)
		b.PrependInt64(0) // nulls
		b.PrependInt64(rows)
	}
	nodes := b.EndVector(len(columns))
	var sizes []int
	for _, c := range columns {
		if sizes = append(sizes, 0); c.Kind != Int { // there is no bitmap
			sizes = append(sizes, len(c.offsets))
		}
		sizes = append(sizes, len(c.data))
	}
	body := int64(0)
	offsets := make([]int64, len(sizes))
	for i, n := range sizes {
		offsets[i] = body
		body += (int64(n) + alignment - 1) &^ (alignment - 1)
	}
	b.StartVector(16, len(sizes), 8)
	for i := len(sizes) - 1; i >= 0; i-- {
		b.Prep(8, 16)
		b.PrependInt64(int64(sizes[i]))
		b.PrependInt64(offsets[i])
	}
	buffers := b.EndVector(len(sizes))
	b.StartObject(4)
	b.PrependInt64Slot(0, rows, 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	written, err := w.message(b, headerBatch, b.EndObject(), body)
	w.blocks = append(w.blocks, written)
	for _, c := range columns {
		for _, part := range [][]byte{c.offsets, c.data} {
			if err == nil {
				err = w.write(part)
			}
			if err == nil {
				err = w.pad(alignment)
			}
		}
	}
	return err
}

// message writes an encapsulated message, whose body begins at a multiple of the alignment.
func (w *Writer) message(b *flatbuffers.Builder, kind byte, header flatbuffers.UOffsetT, body int64) (block, error) {
	b.StartObject(5)
	b.PrependInt16Slot(0, version5, 0)
	b.PrependByteSlot(1, kind, 0)
	b.PrependUOffsetTSlot(2, header, 0)
	b.PrependInt64Slot(3, body, 0)
	b.Finish(b.EndObject())
	text := b.FinishedBytes()
	padding := -(w.at + 8 + int64(len(text))) & (alignment - 1)
	written := block{offset: w.at, head: int32(8 + int64(len(text)) + padding), body: body}
	start := binary.LittleEndian.AppendUint32([]byte("\xff\xff\xff\xff"), uint32(written.head-8))
	for _, part := range [][]byte{start, text, make([]byte, padding)} {
		if err := w.write(part); err != nil {
			return written, err
		}
	}
	return written, nil
}

// Close writes the end of the file, which lists the batches. It does not close the underlying
// writer.
func (w *Writer) Close() error {
	b := flatbuffers.NewBuilder(1024)
	schema := w.schema(b)
	b.StartVector(24, len(w.blocks), 8)
	for i := len(w.blocks) - 1; i >= 0; i-- {
		b.Prep(8, 24)
		b.PrependInt64(w.blocks[i].body)
		b.Pad(4)
		b.PrependInt32(w.blocks[i].head)
		b.PrependInt64(w.blocks[i].offset)
	}
	blocks := b.EndVector(len(w.blocks))
	b.StartObject(5)
	b.PrependInt16Slot(0, version5, 0)
	b.PrependUOffsetTSlot(1, schema, 0)
	b.PrependUOffsetTSlot(3, blocks, 0)
	b.Finish(b.EndObject())
	end := []byte("\xff\xff\xff\xff\x00\x00\x00\x00") // marks the end of the messages
	end = append(end, b.FinishedBytes()...)
	end = binary.LittleEndian.AppendUint32(end, uint32(len(b.FinishedBytes())))
	return w.write(append(end, magic...))
}

func (w *Writer) schema(b *flatbuffers.Builder) flatbuffers.UOffsetT {
	var fields, pairs []flatbuffers.UOffsetT
	for _, f := range w.fields {
		name, none := b.CreateString(f.Name), b.CreateVectorOfTables(nil)
		kind := map[Kind]byte{Int: typeInt, Bytes: typeBinary, String: typeUtf8}[f.Kind]
		b.StartObject(2)
		if f.Kind == Int {
			b.PrependInt32Slot(0, 32, 0)
			b.PrependBoolSlot(1, true, false)
		}
		of := b.EndObject()
		b.StartObject(7)
		b.PrependUOffsetTSlot(0, name, 0)
		b.PrependByteSlot(2, kind, 0)
		b.PrependUOffsetTSlot(3, of, 0)
		b.PrependUOffsetTSlot(5, none, 0)
		fields = append(fields, b.EndObject())
	}
	for _, pair := range w.metadata {
		key, value := b.CreateString(pair[0]), b.CreateString(pair[1])
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, key, 0)
		b.PrependUOffsetTSlot(1, value, 0)
		pairs = append(pairs, b.EndObject())
	}
	all, meta := b.CreateVectorOfTables(fields), b.CreateVectorOfTables(pairs)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, all, 0)
	b.PrependUOffsetTSlot(2, meta, 0)
	return b.EndObject()
}
