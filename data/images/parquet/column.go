package parquet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// column reads a column of a row group forwards.
type column struct {
	leaf  leaf
	codec codec
	pos   int // the next row

	in           *bufio.Reader
	left         int64 // remaining bytes
	stored, room []byte
	dictionary   []value
	page         page
}

func newColumn(s *shard, group, at int) *column {
	c := s.footer.groups[group].chunks[at]
	in := bufio.NewReaderSize(io.NewSectionReader(s.file, c.begin, c.size), maxHead)
	return &column{leaf: s.footer.leaves[at], codec: c.codec, in: in, left: c.size}
}

// next returns the value of the next row, which is valid until the page ends. ok is false for null.
func (c *column) next() (v value, ok bool, err error) {
	for c.page.rows == 0 {
		h, err := c.head()
		if err != nil {
			return value{}, false, err
		}
		if err := c.load(h); err != nil {
			return value{}, false, err
		}
	}
	c.pos++
	v, ok, err = c.page.next()
	return v, ok, unended(err)
}

// skip skips n rows. It does not decompress pages that are skipped completely.
func (c *column) skip(n int) error {
	for n > 0 {
		if c.page.rows > 0 {
			if _, _, err := c.next(); err != nil {
				return err
			}
			n--
			continue
		}
		h, err := c.head()
		if err != nil {
			return err
		}
		if (h.kind == dataPage || h.kind == dataPage2) && h.rows <= n {
			if _, err := c.in.Discard(h.stored); err != nil {
				return unended(err)
			}
			c.left -= int64(h.stored)
			c.pos += h.rows
			n -= h.rows
			continue
		}
		if err := c.load(h); err != nil {
			return err
		}
	}
	return nil
}

// head reads the header of the next page.
func (c *column) head() (pageHead, error) {
	h, size, err := readHead(c.in, c.left)
	if err != nil {
		return h, unended(err)
	}
	if _, err := c.in.Discard(size); err != nil {
		return h, unended(err)
	}
	c.left -= int64(size)
	return h, nil
}

// load reads the page of a header: rows, or the dictionary.
func (c *column) load(h pageHead) error {
	b, err := c.body(h)
	if err != nil {
		return err
	}
	switch h.kind {
	case dictionaryPage:
		return c.readDictionary(h, b)
	case indexPage:
		return nil
	}
	c.page, err = c.open(h, b)
	return unended(err)
}

// readDictionary stores the values that later pages refer to.
func (c *column) readDictionary(h pageHead, b []byte) error {
	if h.encoding == oldDictionary {
		h.encoding = plainValues // its old name
	}
	v, err := newValues(h.encoding, c.leaf.physical, bytes.Clone(b), nil)
	if err != nil {
		return unended(err)
	}
	c.dictionary = nil
	for range h.rows {
		one, err := v.next()
		if err != nil {
			return fmt.Errorf("a dictionary of %d values: %w", h.rows, unended(err))
		}
		c.dictionary = append(c.dictionary, one)
	}
	return nil
}

// unended replaces io.EOF by io.ErrUnexpectedEOF, if more data is expected.
func unended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
