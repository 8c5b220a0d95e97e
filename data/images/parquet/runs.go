package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// runs decodes small numbers in runs: of one repeated value, or of bit-packed values
// (parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"). Runs are not
// expanded, so a large claimed length costs nothing.
type runs struct {
	b      []byte // remaining bytes
	width  int    // bits, at most 32
	repeat uint64 // remaining repetitions of value
	value  uint32
	packed bitReader
}

func newRuns(b []byte, width int) (*runs, error) {
	if width > 32 {
		return nil, fmt.Errorf("numbers of %d bits", width)
	}
	return &runs{b: b, width: width}, nil
}

func (r *runs) next() (uint32, error) {
	for {
		if r.repeat > 0 {
			r.repeat--
			return r.value, nil
		}
		if v, ok := r.packed.next(); ok {
			return uint32(v), nil
		}
		if err := r.begin(); err != nil {
			return 0, err
		}
	}
}

// begin starts the next run.
func (r *runs) begin() error {
	head, n := binary.Uvarint(r.b)
	if n <= 0 {
		return io.ErrUnexpectedEOF
	}
	r.b = r.b[n:]
	if head&1 == 0 {
		size := (r.width + 7) / 8
		if size > len(r.b) {
			return io.ErrUnexpectedEOF
		}
		var v [4]byte
		copy(v[:], r.b[:size])
		r.value, r.repeat, r.b = binary.LittleEndian.Uint32(v[:]), head>>1, r.b[size:]
		return nil
	}
	if r.width == 0 {
		r.value, r.repeat = 0, head>>1*8
		return nil
	}
	size := len(r.b) // the last group may be truncated
	if groups := head >> 1; groups < uint64(size)/uint64(r.width) {
		size = int(groups) * r.width
	}
	r.packed = bitReader{b: r.b[:size], width: r.width}
	r.b = r.b[size:]
	return nil
}

// bitReader reads numbers of width bits, lowest bits first. It ends when no complete number is
// left.
type bitReader struct {
	b     []byte
	at    int // bits read
	width int // at most 64
}

func (r *bitReader) next() (v uint64, ok bool) {
	if r.width == 0 || r.at+r.width > 8*len(r.b) {
		return 0, false
	}
	for got := 0; got < r.width; {
		from := r.at % 8
		take := min(8-from, r.width-got)
		v |= uint64(r.b[r.at/8]>>from&(1<<take-1)) << got
		got += take
		r.at += take
	}
	return v, true
}

// deltas decodes integers stored as differences in blocks (Encodings.md, "Delta Encoding").
type deltas struct {
	b       []byte // what is left
	count   int    // values left
	value   int64
	first   bool // the current value is the first and not yet returned
	perMini int  // values per miniblock
	minis   int  // miniblocks per block
	least   int64
	widths  []byte // of the remaining miniblocks of this block
	packed  bitReader
	left    int // remaining values of this miniblock
}

func newDeltas(b []byte) (*deltas, error) {
	t := thrift{b: b}
	var head [3]uint64
	for i := range head {
		var err error
		if head[i], err = t.uvarint(); err != nil {
			return nil, err
		}
	}
	first, err := t.varint()
	if err != nil {
		return nil, err
	}
	size, minis, count := head[0], head[1], head[2]
	if size == 0 || size > 1<<16 || minis == 0 || size%minis != 0 || size/minis%8 != 0 || count > maxRows {
		return nil, fmt.Errorf("%d differences in blocks of %d, each of %d parts", count, size, minis)
	}
	return &deltas{b: t.b, count: int(count), value: first, first: true, perMini: int(size / minis),
		minis: int(minis)}, nil
}

func (d *deltas) next() (int64, error) {
	if d.count == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	d.count--
	if d.first {
		d.first = false
		return d.value, nil
	}
	if d.left == 0 {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	d.left--
	v := uint64(0)
	if d.packed.width > 0 {
		var ok bool
		if v, ok = d.packed.next(); !ok {
			return 0, io.ErrUnexpectedEOF
		}
	}
	d.value += d.least + int64(v) // intentionally wraps around
	return d.value, nil
}

// begin starts the next miniblock, and the next block if necessary.
func (d *deltas) begin() error {
	if len(d.widths) == 0 {
		t := thrift{b: d.b}
		var err error
		if d.least, err = t.varint(); err != nil {
			return err
		}
		if d.widths, err = t.take(uint64(d.minis)); err != nil {
			return err
		}
		d.b = t.b
	}
	width := int(d.widths[0])
	if width > 64 {
		return errors.New("differences of more than 64 bits")
	}
	d.widths = d.widths[1:]
	size := min(d.perMini/8*width, len(d.b)) // the last miniblock may be truncated
	d.packed, d.left = bitReader{b: d.b[:size], width: width}, d.perMini
	d.b = d.b[size:]
	return nil
}

// rest returns the bytes after all differences.
func (d *deltas) rest() ([]byte, error) {
	for d.count > 0 {
		if _, err := d.next(); err != nil {
			return nil, err
		}
	}
	return d.b, nil
}
