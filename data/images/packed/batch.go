package packed

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// batch holds the columns of a few hundred images, in the mapped memory.
type batch struct {
	labels, widths, heights []int32
	offsets                 []int32 // into contents, one more than images
	contents                []byte
	names                   *array.String
}

// content returns the bytes of image i.
func (b *batch) content(i int) []byte { return b.contents[b.offsets[i]:b.offsets[i+1]:b.offsets[i+1]] }

// readShard finds the columns in a mapped shard, and checks that every image lies within it.
func readShard(mapping []byte, s Settings, classes int, shard Shard) (all []batch, err error) {
	if got := tailSum(mapping); got != shard.Tail {
		return nil, fmt.Errorf("damaged at its end: SHA-256 %s, want %s", got, shard.Tail)
	}
	defer func() { // Arrow's reader panics on references outside a damaged file
		if p := recover(); p != nil {
			all, err = nil, fmt.Errorf("damaged: %v", p)
		}
	}()
	f, err := ipc.NewMappedFileReader(mapping, ipc.WithBodySizeLimit(int64(len(mapping))),
		ipc.WithAllocator(limitedAllocator{memory.DefaultAllocator}))
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if want := schema(s); !f.Schema().Equal(want) {
		return nil, fmt.Errorf("the columns %v, want %v", f.Schema(), want)
	}
	n := 0
	for i := range f.NumRecords() {
		record, err := f.RecordBatchAt(i)
		if err != nil {
			return nil, fmt.Errorf("damaged: %w", err)
		}
		b, err := columns(record)
		if err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		if err := b.check(s, classes); err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		n += len(b.labels)
		all = append(all, b)
	}
	if n != shard.Rows {
		return nil, fmt.Errorf("%d pictures, want %d", n, shard.Rows)
	}
	return all, nil
}

// columns extracts the columns of a record. The record is not released: its memory is the mapping.
func columns(r arrow.RecordBatch) (batch, error) {
	for i := range int(r.NumCols()) {
		if c := r.Column(i); c.NullN() > 0 || c.Len() != int(r.NumRows()) || c.Data().Offset() != 0 {
			return batch{}, fmt.Errorf("column %s with gaps", r.ColumnName(i))
		}
	}
	content := r.Column(columnContent).(*array.Binary)
	b := batch{
		labels:  r.Column(columnLabel).(*array.Int32).Int32Values(),
		widths:  r.Column(columnWidth).(*array.Int32).Int32Values(),
		heights: r.Column(columnHeight).(*array.Int32).Int32Values(),
		offsets: content.ValueOffsets(),
		names:   r.Column(columnName).(*array.String),
	}
	if buffer := content.Data().Buffers()[2]; buffer != nil {
		b.contents = buffer.Bytes()
	}
	if len(b.offsets) != len(b.labels)+1 {
		return batch{}, fmt.Errorf("%d offsets for %d pictures", len(b.offsets), len(b.labels))
	}
	return b, nil
}

// check checks that all references stay within the batch.
func (b *batch) check(s Settings, classes int) error {
	if b.offsets[0] < 0 || int(b.offsets[len(b.labels)]) > len(b.contents) {
		return errors.New("pictures beyond the end")
	}
	for i, label := range b.labels {
		w, h, size := int(b.widths[i]), int(b.heights[i]), int(b.offsets[i+1])-int(b.offsets[i])
		switch {
		case label < 0 || int(label) >= classes:
			return fmt.Errorf("picture %d: label %d, want 0 to %d", i, label, classes-1)
		case w < 1 || h < 1 || size < 1:
			return fmt.Errorf("picture %d: %d×%d pixels in %d bytes", i, w, h, size)
		case s.Format == Raw && (size%3 != 0 || size/3/w != h || size != 3*w*h):
			return fmt.Errorf("picture %d: %d bytes, want %d×%d×3", i, size, w, h)
		case len(b.names.Value(i)) > 1<<16:
			return fmt.Errorf("picture %d: a name of %d bytes", i, len(b.names.Value(i)))
		}
	}
	return nil
}

// name returns a copy, since the mapping may be closed before it is printed.
func (b *batch) name(i int) string { return string(bytes.Clone([]byte(b.names.Value(i)))) }

// limitedAllocator is an allocator with a limit. Reading a mapping copies nothing, so the reader
// needs little memory, but a damaged file that claims to be compressed could request any amount.
type limitedAllocator struct{ memory.Allocator }

func (a limitedAllocator) Allocate(size int) []byte { return a.Allocator.Allocate(a.bounded(size)) }

func (a limitedAllocator) Reallocate(size int, b []byte) []byte {
	return a.Allocator.Reallocate(a.bounded(size), b)
}

// bounded panics, which readShard converts to an error.
func (limitedAllocator) bounded(size int) int {
	if size > 1<<20 {
		panic(fmt.Sprintf("a request for %d bytes", size))
	}
	return size
}
