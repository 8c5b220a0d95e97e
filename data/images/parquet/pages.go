package parquet

import (
	"bufio"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// maxPage limits the bytes of a page, before and after decompression.
var maxPage int64 = 512 << 20 // a variable for tests

// pageError is the size of a page that is too large.
type pageError int64

func (e pageError) Error() string { return fmt.Sprintf("a page of %d MiB", int64(e)>>20) }

type page struct {
	offset       int64 // position of its header in the file
	data, stored int64 // position and length of its compressed bytes, which follow levels in version 2
	size         int64 // length of the same bytes uncompressed
	compressed   bool
	first, rows  int
}

// chunk is a column of a row group: its pages, found by reading their headers only.
type chunk struct {
	pages      []page
	dictionary *page // nil if there is none
}

// largest is the size of the largest page.
func (c *chunk) largest() int64 {
	most := int64(0)
	if c.dictionary != nil {
		most = c.dictionary.size
	}
	for _, p := range c.pages {
		most = max(most, p.size)
	}
	return most
}

// chunkScanner reads the headers of a chunk.
type chunkScanner struct {
	chunk
	meta    *format.ColumnMetaData
	begin   int64 // position of the chunk in the file
	section *io.SectionReader
	in      *bufio.Reader
	decoder *thrift.Decoder
	row     int
}

// locate finds the pages of a chunk and checks the claims of their headers. It corrects where the
// metadata says that the dictionary and the first page are, which some writers get wrong.
func (f *file) locate(group, column int) (c *chunk, err error) {
	defer recovered(&err)
	rows := f.groups()[group]
	meta := &f.table.Metadata().RowGroups[group].Columns[f.leaves[column].Index()].MetaData
	s := chunkScanner{meta: meta, begin: meta.DataPageOffset}
	if d := meta.DictionaryPageOffset; d > 0 && d < s.begin {
		s.begin = d
	}
	s.section = io.NewSectionReader(f.disk, s.begin, meta.TotalCompressedSize)
	s.in = bufio.NewReader(s.section)
	s.decoder = thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(s.in))
	for s.row < rows {
		if err := s.next(rows - s.row); err != nil {
			return nil, fmt.Errorf("column %s: row %d: %w", f.leaves[column].Name(), s.row, err)
		}
	}
	meta.DictionaryPageOffset = 0
	if s.dictionary != nil {
		meta.DictionaryPageOffset = s.begin
	}
	if len(s.pages) > 0 {
		meta.DataPageOffset = s.pages[0].offset
	}
	return &s.chunk, nil
}

// at is the position in the chunk.
func (s *chunkScanner) at() int64 {
	pos, _ := s.section.Seek(0, io.SeekCurrent) // seeking within a section gives no error
	return pos - int64(s.in.Buffered())
}

// next reads a header and goes to the next one. It is given the number of rows that are left.
func (s *chunkScanner) next(left int) error {
	p := page{offset: s.begin + s.at(), first: s.row, compressed: true}
	var h format.PageHeader
	if err := s.decoder.Decode(&h); err != nil {
		return fmt.Errorf("the head of a page: %w", err)
	}
	stored := int64(h.CompressedPageSize)
	p.data, p.stored, p.size = s.begin+s.at(), stored, int64(h.UncompressedPageSize)
	rest := s.meta.TotalCompressedSize - s.at()
	switch {
	case stored < 0 || p.size < 0 || stored > rest:
		return fmt.Errorf("a page of %d bytes with %d left", stored, rest)
	case max(stored, p.size) > maxPage:
		return pageError(max(stored, p.size))
	case h.DataPageHeader.Valid:
		p.rows = int(h.DataPageHeader.V.NumValues)
	case h.DataPageHeaderV2.Valid:
		v2 := h.DataPageHeaderV2.V
		p.rows, p.compressed = int(v2.NumValues), !v2.IsCompressed.Valid || v2.IsCompressed.V
		levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
		p.data, p.stored, p.size = p.data+levels, stored-levels, p.size-levels
		if levels < 0 || p.stored < 0 || p.size < 0 {
			return fmt.Errorf("a page with %d bytes of levels of %d", levels, stored)
		}
	case h.DictionaryPageHeader.Valid:
		n := int64(h.DictionaryPageHeader.V.NumValues)
		if n < 0 || n > p.size || p.offset != s.begin {
			return fmt.Errorf("a dictionary of %d values in %d bytes", n, p.size)
		}
		s.dictionary = &p
	}
	if p.rows < 0 || p.rows > left {
		return fmt.Errorf("a page of %d rows, want at most %d", p.rows, left)
	}
	if p.rows > 0 {
		s.pages = append(s.pages, p)
		s.row += p.rows
	}
	if _, err := s.section.Seek(s.at()+stored, io.SeekStart); err != nil {
		return err
	}
	s.in.Reset(s.section)
	return nil
}
