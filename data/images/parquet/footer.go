package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

const magic = "PAR1"

// maxFooter limits the size of a footer in bytes. Those of image sets have some kilobytes.
const maxFooter = 1 << 26

// maxRows limits the number of rows: a run of null rows takes a few bytes, however long it is.
const maxRows = 1 << 24

// footer is the metadata at the end of a file.
type footer struct {
	leaves []leaf
	groups []rowGroup
	meta   map[string]string
}

// leaf is a column: a path in the schema that holds values.
type leaf struct {
	path     string // names joined by dots
	physical physical
	full     int  // the definition level of a non-null value
	repeated bool // it or an ancestor is repeated
}

// rowGroup is a group of rows, stored column by column.
type rowGroup struct {
	rows   int
	chunks []chunk // one per leaf
}

// chunk is a column of a row group: consecutive pages.
type chunk struct {
	codec       codec
	begin, size int64 // in the file
}

// physical is the storage type of values.
type physical int64

const (
	int32Values physical = 1
	int64Values physical = 2
	byteArrays  physical = 6
)

func (p physical) String() string {
	names := [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
	if p < 0 || int(p) >= len(names) {
		return fmt.Sprintf("type %d", int64(p))
	}
	return names[p]
}

// readFooter reads the footer of a file of so many bytes (parquet-format, README.md, "File
// format").
func readFooter(r io.ReaderAt, size int64) (*footer, error) {
	var tail [8]byte
	if size < int64(2*len(magic)+4) {
		return nil, fmt.Errorf("%d bytes are too few", size)
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	if string(tail[4:]) != magic {
		return nil, fmt.Errorf("no %s at the end, but %q", magic, tail[4:])
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > min(maxFooter, size-8) {
		return nil, fmt.Errorf("a footer of %d bytes in a file of %d", n, size)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, size-8-n); err != nil {
		return nil, err
	}
	all, _, err := parseStruct(b)
	if err != nil {
		return nil, fmt.Errorf("its footer: %w", err)
	}
	return newFooter(&all, size)
}

func newFooter(all *node, size int64) (*footer, error) {
	f := &footer{meta: map[string]string{}}
	for _, pair := range all.items(5) {
		f.meta[pair.text(1)] = pair.text(2)
	}
	schema := all.items(2)
	if len(schema) == 0 {
		return nil, errors.New("no schema")
	}
	rest := schema[1:]
	for range schema[0].int(5, 0) {
		var err error
		if rest, err = f.addLeaves(rest, nil, leaf{}); err != nil {
			return nil, err
		}
	}
	rows := 0
	for i, g := range all.items(4) {
		group, err := f.group(&g, size)
		if err != nil {
			return nil, fmt.Errorf("row group %d: %w", i, err)
		}
		if rows += group.rows; rows > maxRows {
			return nil, fmt.Errorf("more than %d rows", maxRows)
		}
		f.groups = append(f.groups, group)
	}
	return f, nil
}

// addLeaves adds the leaves below the next element of the schema, and returns the remaining
// elements. The schema is a tree in depth-first order.
func (f *footer) addLeaves(schema []node, path []string, above leaf) ([]node, error) {
	if len(schema) == 0 || len(path) >= maxDepth {
		return nil, errors.New("a schema without an end")
	}
	const optional, repeated = 1, 2
	element := &schema[0]
	path = append(path[:len(path):len(path)], element.text(4))
	switch element.int(3, 0) {
	case optional:
		above.full++
	case repeated:
		above.full++
		above.repeated = true
	}
	rest, children := schema[1:], element.int(5, 0)
	if children == 0 {
		above.path, above.physical = strings.Join(path, "."), physical(element.int(1, -1))
		f.leaves = append(f.leaves, above)
	}
	var err error
	for range children {
		if rest, err = f.addLeaves(rest, path, above); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func (f *footer) group(g *node, size int64) (rowGroup, error) {
	rows, columns := g.int(3, -1), g.items(1)
	if rows < 0 || rows > maxRows || len(columns) != len(f.leaves) {
		return rowGroup{}, fmt.Errorf("%d rows and %d columns, want at most %d and %d", rows, len(columns), maxRows,
			len(f.leaves))
	}
	out := rowGroup{rows: int(rows)}
	for i := range columns {
		c, err := newChunk(&columns[i], f.leaves[i], size)
		if err != nil {
			return rowGroup{}, fmt.Errorf("column %s: %w", f.leaves[i].path, err)
		}
		out.chunks = append(out.chunks, c)
	}
	return out, nil
}

// newChunk locates the pages of a column: the dictionary, if any, comes first.
func newChunk(column *node, l leaf, size int64) (chunk, error) {
	meta := column.field(3, kindStruct)
	if meta == nil || column.text(1) != "" || physical(meta.int(1, -1)) != l.physical {
		return chunk{}, errors.New("encrypted, in another file, or of another type than in the schema")
	}
	c := chunk{codec: codec(meta.int(4, -1)), begin: meta.int(9, -1), size: meta.int(7, -1)}
	if d := meta.int(11, 0); d > 0 && d < c.begin {
		c.begin = d
	}
	if c.begin < 0 || c.size < 0 || c.begin > size || c.size > size-c.begin {
		return chunk{}, fmt.Errorf("%d bytes at %d in a file of %d", c.size, c.begin, size)
	}
	return c, nil
}
