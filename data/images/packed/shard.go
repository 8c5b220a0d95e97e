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

	"fspda/data/images/arrow"
	"fspda/internal/wholefile"
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

// fields returns the columns of a shard. An image is far smaller than 2 GB, so offsets have 32
// bits.
func fields(s Settings) []arrow.Field {
	content := "pixels"
	if s.Format == JPEG {
		content = "jpeg"
	}
	return []arrow.Field{
		{Name: "label", Kind: arrow.Int, Bits: 32, Signed: true},
		{Name: "width", Kind: arrow.Int, Bits: 32, Signed: true},
		{Name: "height", Kind: arrow.Int, Bits: 32, Signed: true},
		{Name: content, Kind: arrow.Bytes, Bits: 32},
		{Name: "name", Kind: arrow.String, Bits: 32},
	}
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
	path   string
	file   *os.File
	buffer *bufio.Writer
	sum    hash.Hash
	arrow  *arrow.Writer
	rows   []*arrow.Column // pending
	size   int64           // bytes of content so far
	batch  int             // bytes of content in rows
	n      int             // rows so far
}

func newShard(path string, s Settings) (*shardWriter, error) {
	f, err := os.Create(path + suffix)
	if err != nil {
		return nil, writing(path, err)
	}
	w := &shardWriter{path: path, file: f, sum: sha256.New(), buffer: bufio.NewWriterSize(f, 1<<20)}
	w.arrow, err = arrow.NewWriter(io.MultiWriter(w.buffer, w.sum), fields(s), [][2]string{{"fspda.kind", kind},
		{"fspda.version", strconv.Itoa(Version)}, {"fspda.format", s.Format}, {"fspda.size", strconv.Itoa(s.Size)}})
	if err != nil {
		w.abandon()
		return nil, writing(path, err)
	}
	for _, f := range fields(s) {
		w.rows = append(w.rows, &arrow.Column{Field: f})
	}
	return w, nil
}

func (w *shardWriter) add(r row) error {
	w.rows[columnLabel].AppendInt(r.label)
	w.rows[columnWidth].AppendInt(int32(r.w))
	w.rows[columnHeight].AppendInt(int32(r.h))
	w.rows[columnContent].AppendBytes(r.content)
	w.rows[columnName].AppendBytes([]byte(r.name))
	w.n++
	w.batch += len(r.content)
	w.size += int64(len(r.content))
	if w.batch >= batchBytes || w.rows[columnLabel].Len() >= batchRows {
		return w.flush()
	}
	return nil
}

// flush writes the pending rows as a batch.
func (w *shardWriter) flush() error {
	if w.rows[columnLabel].Len() == 0 {
		return nil
	}
	if err := w.arrow.Write(w.rows...); err != nil {
		return writing(w.path, err)
	}
	w.batch = 0
	for _, c := range w.rows {
		c.Reset()
	}
	return nil
}

// finish renames the shard to its final name.
func (w *shardWriter) finish() (Shard, error) {
	err := wholefile.Finish(w.file, w.path, func(io.Writer) error {
		err := w.flush()
		if err == nil {
			err = w.arrow.Close()
		}
		if err == nil {
			err = w.buffer.Flush()
		}
		return err
	})
	if err != nil {
		return Shard{}, writing(w.path, err)
	}
	return Shard{File: filepath.Base(w.path), Rows: w.n, Bytes: w.arrow.Size(),
		SHA256: hex.EncodeToString(w.sum.Sum(nil))}, nil
}

// abandon removes the unfinished file.
func (w *shardWriter) abandon() {
	_ = w.file.Close()             // an earlier error is already reported
	_ = os.Remove(w.path + suffix) // the next run overwrites it
}

func shardName(split string, n int) string { return fmt.Sprintf("%s-%05d.arrow", split, n) }
