package parquet

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/parquet-go/parquet-go"
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

	checked bool // the dictionary

	values map[int][]value // values of the pages in memory
	order  []int           // those pages, the most recently read last
	size   int64           // bytes of those pages and the dictionary
}

// window shows a page of a file where its first page is: parquet-go reads pages in their order.
type window struct {
	file        io.ReaderAt
	data, delta int64
}

func (w *window) ReadAt(b []byte, at int64) (int, error) {
	if at >= w.data {
		at += w.delta
	}
	return w.file.ReadAt(b, at)
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
	r.window = &window{file: k.disk}
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

// shrink drops other chunks, then pages of the last one but for its last page.
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
