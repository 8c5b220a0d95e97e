package packed

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	batchRows  = 1024
	batchBytes = 16 << 20
)

// Columns of a shard.
const (
	columnLabel = iota
	columnWidth
	columnHeight
	columnContent
	columnName
)

// schema returns the schema of a shard. An image is far smaller than 2 GB, so offsets have 32 bits.
func schema(s Settings) *arrow.Schema {
	content := "pixels"
	if s.Format == JPEG {
		content = "jpeg"
	}
	meta := arrow.NewMetadata([]string{"fspda.kind", "fspda.version", "fspda.format", "fspda.size"},
		[]string{kind, strconv.Itoa(Version), s.Format, strconv.Itoa(s.Size)})
	return arrow.NewSchema([]arrow.Field{
		{Name: "label", Type: arrow.PrimitiveTypes.Int32},
		{Name: "width", Type: arrow.PrimitiveTypes.Int32},
		{Name: "height", Type: arrow.PrimitiveTypes.Int32},
		{Name: content, Type: arrow.BinaryTypes.Binary},
		{Name: "name", Type: arrow.BinaryTypes.String},
	}, &meta)
}

// row is an image prepared for a shard.
type row struct {
	label   int32
	w, h    int
	content []byte
	name    string
}

// shardWriter writes a shard under a temporary name.
type shardWriter struct {
	path    string
	file    *os.File
	buffer  *bufio.Writer
	sum     hash.Hash
	counter counter
	arrow   *ipc.FileWriter
	rows    *array.RecordBuilder
	pending int   // bytes in rows
	size    int64 // bytes of content so far
	n       int   // rows so far
}

// counter counts written bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func newShard(path string, s *arrow.Schema) (*shardWriter, error) {
	f, err := os.Create(path + suffix)
	if err != nil {
		return nil, writing(path, err)
	}
	w := &shardWriter{path: path, file: f, sum: sha256.New(), buffer: bufio.NewWriterSize(f, 1<<20)}
	w.arrow, err = ipc.NewFileWriter(io.MultiWriter(w.buffer, w.sum, &w.counter), ipc.WithSchema(s))
	if err != nil {
		w.abandon()
		return nil, writing(path, err)
	}
	w.rows = array.NewRecordBuilder(memory.DefaultAllocator, s)
	return w, nil
}

// add appends a picture.
func (w *shardWriter) add(r row) error {
	w.rows.Field(columnLabel).(*array.Int32Builder).Append(r.label)
	w.rows.Field(columnWidth).(*array.Int32Builder).Append(int32(r.w))
	w.rows.Field(columnHeight).(*array.Int32Builder).Append(int32(r.h))
	w.rows.Field(columnContent).(*array.BinaryBuilder).Append(r.content)
	w.rows.Field(columnName).(*array.StringBuilder).Append(r.name)
	w.n++
	w.pending += len(r.content)
	w.size += int64(len(r.content))
	if w.pending >= batchBytes || w.rows.Field(columnLabel).Len() >= batchRows {
		return w.flush()
	}
	return nil
}

// flush writes the pending rows as a batch.
func (w *shardWriter) flush() error {
	if w.rows.Field(columnLabel).Len() == 0 {
		return nil
	}
	batch := w.rows.NewRecordBatch()
	defer batch.Release()
	w.pending = 0
	if err := w.arrow.Write(batch); err != nil {
		return writing(w.path, err)
	}
	return nil
}

// finish renames the shard to its final name.
func (w *shardWriter) finish() (Shard, error) {
	err := w.flush()
	w.rows.Release()
	if err == nil {
		err = w.arrow.Close()
	}
	if err == nil {
		err = w.buffer.Flush()
	}
	var tail string
	if err == nil {
		end := make([]byte, min(int64(w.counter), tailBytes))
		_, err = w.file.ReadAt(end, int64(w.counter)-int64(len(end)))
		tail = tailSum(end)
	}
	if err == nil {
		err = w.file.Sync()
	}
	if e := w.file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(w.path+suffix, w.path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(w.path))
	}
	if err != nil {
		_ = os.Remove(w.path + suffix) // return the first error
		return Shard{}, writing(w.path, err)
	}
	return Shard{File: filepath.Base(w.path), Rows: w.n, Bytes: int64(w.counter),
		SHA256: hex.EncodeToString(w.sum.Sum(nil)), Tail: tail}, nil
}

// tailBytes is the size of a shard's end that is verified before it is read: Arrow's reader trusts
// the counts in the footer.
const tailBytes = 64 << 10

// tailSum returns the SHA-256 of the end of a shard.
func tailSum(shard []byte) string { return checksum(shard[max(0, len(shard)-tailBytes):]) }

// abandon removes the unfinished file.
func (w *shardWriter) abandon() {
	_ = w.file.Close()             // an earlier error is already reported
	_ = os.Remove(w.path + suffix) // the next run overwrites it
}

func shardName(split string, n int) string { return fmt.Sprintf("%s-%05d.arrow", split, n) }
