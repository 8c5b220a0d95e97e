package parquet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// CacheBytes is the size up to which pages stay in memory, in each split. The last page always
// does.
const CacheBytes = 256 << 20

// largePage is the size from which the memory that decoding a page took is freed at once.
const largePage = 32 << 20

// key names a column of a row group.
type key struct {
	*file
	group, column int
}

// reader reads the pages of a chunk, in any order, and keeps some of them.
type reader struct {
	key
	*chunk
	window *window
	in     *parquet.FilePages

	checked bool // The size of the dictionary was checked.

	values map[int][]value // The values of the pages in memory, by the number of the page.
	order  []int           // The numbers of these pages, the most recently read last.
	size   int64           // The bytes of these pages and of the dictionary.
}

// window lets parquet-go, which reads pages in their order only, read any page: it shows the bytes of
// that page at the position of the first one.
type window struct {
	file    io.ReaderAt
	data    int64          // The position of the first page in the file.
	delta   int64          // The distance from the first page to the page that is shown.
	changed map[int64]byte // Bytes to show in place of the file's, by their position in the file.
}

func (w *window) ReadAt(b []byte, at int64) (int, error) {
	if at >= w.data {
		at += w.delta
	}
	n, err := w.file.ReadAt(b, at)
	for pos, v := range w.changed {
		if k := pos - at; k >= 0 && k < int64(n) {
			b[k] = v
		}
	}
	return n, err
}

// shrink changes the size in the header of a page of LZ4, as it is shown, to one byte less. With the
// right size parquet-go decompresses into a larger buffer that it allocates, and then returns the
// empty one that it had.
func (w *window) shrink(p page) error {
	const i32 = 0x15 // a field of 32 bits that follows the one before it
	var head [16]byte
	if _, err := w.file.ReadAt(head[:], p.offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, kind := binary.Uvarint(head[1:])
	if head[0] != i32 || kind != 1 || head[2] != i32 {
		return errors.New("a page whose header begins with another field than its type and its size")
	}
	_, n := binary.Uvarint(head[3:])
	if n <= 0 || p.size < 1 {
		return nil // an empty page
	}
	size := uint64(p.size-1) << 1 // the lowest bit is the sign
	for k := range n {
		v := byte(size & 0x7f)
		if size >>= 7; k < n-1 {
			v |= 0x80
		}
		w.changed[p.offset+3+int64(k)] = v
	}
	return nil
}

func (k key) open() (r *reader, err error) {
	defer recovered(&err)
	c, err := k.locate(k.group, k.column)
	if err != nil {
		return nil, err
	}
	r = &reader{key: k, chunk: c, values: map[int][]value{}}
	if c.dictionary != nil {
		r.size = c.dictionary.size
	}
	at := k.table.RowGroups()[k.group].ColumnChunks()[k.leaves[k.column].Index()]
	of, ok := at.(*parquet.FileColumnChunk)
	if !ok {
		return nil, fmt.Errorf("a column of type %T", at)
	}
	r.window = &window{file: k.disk, changed: map[int64]byte{}}
	if len(c.pages) > 0 {
		r.window.data = c.pages[0].offset
	}
	r.in = of.PagesFrom(r.window)
	return r, nil
}

// read decodes page i. The memory of its values is never reused.
func (r *reader) read(i int) (all []value, err error) {
	defer recovered(&err)
	p := r.pages[i]
	largest := p.size
	if r.dictionary != nil && !r.checked {
		if err := r.checkPage(*r.dictionary); err != nil {
			return nil, err
		}
		r.checked, largest = true, max(largest, r.dictionary.size)
	}
	if largest > largePage {
		defer func() { // parquet-go keeps its buffers, two of the size of a page, until the second collection
			runtime.GC()
			debug.FreeOSMemory()
		}()
	}
	if err := r.checkPage(p); err != nil {
		return nil, err
	}
	if r.codec() == format.Lz4Raw {
		clear(r.window.changed)
		if r.dictionary != nil {
			err = r.window.shrink(*r.dictionary)
		}
		if err = cmp.Or(err, r.window.shrink(p)); err != nil {
			return nil, err
		}
	}
	r.window.delta = p.offset - r.window.data
	if err := r.in.SeekToRow(0); err != nil {
		return nil, err
	}
	decoded, err := r.in.ReadPage()
	if err != nil {
		return nil, err
	}
	all = make([]value, 0, p.rows)
	var some [64]parquet.Value
	for values := decoded.Values(); ; {
		n, err := values.ReadValues(some[:])
		for _, v := range some[:n] {
			all = append(all, newValue(v))
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if len(all) != p.rows {
		return nil, fmt.Errorf("a page of %d values, want %d", len(all), p.rows)
	}
	return all, nil
}

// codec is the compression of the chunk.
func (k key) codec() format.CompressionCodec {
	return k.table.Metadata().RowGroups[k.group].Columns[k.leaves[k.column].Index()].MetaData.Codec
}

func newValue(v parquet.Value) value {
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return value{n: 1}
		}
		return value{}
	case parquet.Int32:
		return value{n: int64(v.Int32())}
	case parquet.Int64:
		return value{n: v.Int64()}
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return value{b: v.ByteArray()}
	}
	return value{null: true}
}

// cache keeps the chunks that were read last, with some of their pages.
type cache struct {
	readers []*reader // most recently used last
	limit   int64     // most bytes in memory
}

// at returns a value, which is valid as long as it is used.
func (c *cache) at(k key, row int) (value, error) {
	r, err := c.reader(k)
	if err != nil {
		return value{}, err
	}
	i := sort.Search(len(r.pages), func(i int) bool { return r.pages[i].first > row }) - 1
	values, ok := r.values[i]
	if !ok {
		if values, err = r.read(i); err != nil {
			return value{}, err
		}
		r.values[i] = values
		r.order = append(r.order, i)
		r.size += r.pages[i].size
		c.shrink()
	}
	return values[row-r.pages[i].first], nil
}

// reader returns the reader of a chunk, as the most recently used one.
func (c *cache) reader(k key) (*reader, error) {
	at := slices.IndexFunc(c.readers, func(r *reader) bool { return r.key == k })
	if at >= 0 {
		r := c.readers[at]
		c.readers = append(slices.Delete(c.readers, at, at+1), r)
		return r, nil
	}
	r, err := k.open()
	if err == nil {
		c.readers = append(c.readers, r)
	}
	return r, err
}

// shrink drops chunks and pages until the rest is within the limit: first the chunks that were used
// least recently, then the oldest pages of the last chunk. It keeps the last page.
func (c *cache) shrink() {
	size := int64(0)
	for _, r := range c.readers {
		size += r.size
	}
	for size > c.limit && len(c.readers) > 1 {
		size -= c.readers[0].size
		c.readers = slices.Delete(c.readers, 0, 1)
	}
	for r := c.readers[0]; r.size > c.limit && len(r.order) > 1; {
		i := r.order[0]
		r.order = slices.Delete(r.order, 0, 1)
		delete(r.values, i)
		r.size -= r.pages[i].size
	}
}
