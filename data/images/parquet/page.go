package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
)

// maxPage limits the size of a page in bytes. Pages hold whole images.
const maxPage = 1 << 27

// maxHead limits the size of a page header, which may contain the smallest and the largest value.
const maxHead = 1 << 18

// pageHead is the header of a page.
type pageHead struct {
	kind               int64
	size, stored       int // bytes, uncompressed and compressed
	sum                *node
	rows               int
	encoding           encoding
	levels             int // bytes of the uncompressed levels of version 2
	repeats            int
	levelsIn           encoding
	compressed, second bool // second: of version 2
}

// Kinds of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPage2      = 3
)

// readHead reads the header of the next page. It returns io.EOF if there is none.
func readHead(r *bufio.Reader, left int64) (h pageHead, size int, err error) {
	if left <= 0 {
		return h, 0, io.EOF
	}
	var n node
	for _, most := range []int64{1 << 12, maxHead} {
		b, peeked := r.Peek(int(min(most, left)))
		n, size, err = parseStruct(b)
		if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) || peeked != nil {
			break
		}
	}
	if err != nil {
		return h, 0, fmt.Errorf("the head of a page: %w", err)
	}
	h, err = newHead(&n, left-int64(size))
	return h, size, err
}

func newHead(n *node, left int64) (pageHead, error) {
	h := pageHead{kind: n.int(1, -1), sum: n.field(4, kindInt32), compressed: true, levelsIn: levelRuns}
	size, stored, rows, in := n.int(2, -1), n.int(3, -1), int64(0), int64(0)
	switch h.kind {
	case dataPage:
		d := n.field(5, kindStruct)
		rows, in, h.levelsIn = d.int(1, -1), d.int(2, -1), encoding(d.int(3, int64(levelRuns)))
	case dictionaryPage:
		d := n.field(7, kindStruct)
		rows, in = d.int(1, -1), d.int(2, -1)
	case dataPage2:
		d := n.field(8, kindStruct)
		rows, in, h.second = d.int(1, -1), d.int(4, -1), true
		levels, repeats := d.int(5, -1), d.int(6, -1)
		if levels < 0 || repeats < 0 || levels+repeats > min(size, stored) {
			return h, fmt.Errorf("a page with levels of %d and %d bytes", levels, repeats)
		}
		h.levels, h.repeats, h.compressed = int(levels), int(repeats), d.field(7, kindFalse) == nil
	case indexPage:
	default:
		return h, fmt.Errorf("a page of kind %d", h.kind)
	}
	if size < 0 || size > maxPage || stored < 0 || stored > min(maxPage, left) || rows < 0 {
		return h, fmt.Errorf("a page of %d values in %d bytes, %d compressed, with %d bytes left", rows, size, stored,
			left)
	}
	h.size, h.stored, h.rows, h.encoding = int(size), int(stored), int(rows), encoding(in)
	return h, nil
}

// page is a range of rows of a column.
type page struct {
	rows   int // remaining
	full   int
	levels *runs // nil if no row is null
	values values
}

// next returns the value of the next row. ok is false where it is null.
func (p *page) next() (v value, ok bool, err error) {
	p.rows--
	if p.levels != nil {
		level, err := p.levels.next()
		if err != nil || int(level) < p.full {
			return value{}, false, err
		}
	}
	v, err = p.values.next()
	return v, err == nil, err
}

// body reads and decompresses the data after a header, into reused memory.
func (c *column) body(h pageHead) ([]byte, error) {
	c.stored = grown(c.stored, h.stored)
	if _, err := io.ReadFull(c.in, c.stored); err != nil {
		return nil, unended(err)
	}
	c.left -= int64(h.stored)
	if h.sum != nil && uint32(h.sum.n) != crc32.ChecksumIEEE(c.stored) {
		return nil, errors.New("a page with another checksum than it claims")
	}
	if c.codec == plain || !h.compressed {
		if h.stored != h.size {
			return nil, fmt.Errorf("a page of %d bytes that claims %d", h.stored, h.size)
		}
		return c.stored, nil
	}
	c.room = grown(c.room, h.size)
	levels := h.levels + h.repeats
	copy(c.room, c.stored[:levels])
	if levels == h.size { // only levels, and no compressed data
		return c.room, nil
	}
	return c.room, c.codec.decompress(c.room[levels:], c.stored[levels:])
}

// grown returns a slice of n bytes in the memory of b if that is large enough.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// open parses the bytes of a page.
func (c *column) open(h pageHead, b []byte) (page, error) {
	p := page{rows: h.rows, full: c.leaf.full}
	var levels []byte
	switch {
	case h.second:
		levels, b = b[h.repeats:h.repeats+h.levels], b[h.repeats+h.levels:]
	case p.full == 0:
	case h.levelsIn != levelRuns:
		return p, unknown{fmt.Sprintf("the encoding %s of levels", h.levelsIn)}
	default:
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return p, io.ErrUnexpectedEOF
		}
		n := 4 + binary.LittleEndian.Uint32(b)
		levels, b = b[4:n], b[n:]
	}
	var err error
	if p.full > 0 && len(levels) > 0 {
		if p.levels, err = newRuns(levels, bits.Len(uint(p.full))); err != nil {
			return p, err
		}
	}
	p.values, err = newValues(h.encoding, c.leaf.physical, b, c.dictionary)
	return p, err
}
