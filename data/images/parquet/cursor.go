package parquet

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// cursor reads a column of bytes of a row group forwards.
type cursor struct {
	column *file.ByteArrayColumnChunkReader
	full   int16 // the definition level of what is not null
	pos    int   // the next row
}

func newCursor(s *shard, group, column int) (*cursor, error) {
	c, err := s.reader.RowGroup(group).Column(column)
	if err != nil {
		return nil, err
	}
	b, ok := c.(*file.ByteArrayColumnChunkReader)
	if !ok {
		return nil, fmt.Errorf("a column of %v, want bytes", c.Type())
	}
	return &cursor{column: b, full: b.Descriptor().MaxDefinitionLevel()}, nil
}

// skip passes n rows.
func (c *cursor) skip(n int) error {
	for n > 0 {
		got, err := c.column.Skip(int64(n))
		if err != nil {
			return err
		}
		if got == 0 {
			return io.ErrUnexpectedEOF
		}
		c.pos += int(got)
		n -= int(got)
	}
	return nil
}

// next reads up to n rows, at least one. What is null is nil.
func (c *cursor) next(n int) ([][]byte, error) {
	values, defs := make([]parquet.ByteArray, n), make([]int16, n)
	total, _, err := c.column.ReadBatch(int64(n), values, defs, nil)
	if err != nil {
		return nil, err
	}
	if total == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	out, value := make([][]byte, total), 0
	for i := range out {
		if c.full > 0 && defs[i] < c.full {
			continue
		}
		out[i] = bytes.Clone(values[value]) // the page ends with the next call
		value++
	}
	c.pos += int(total)
	return out, nil
}
