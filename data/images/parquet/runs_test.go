package parquet

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// The numbers 0 to 7 in three bits each are the example of Encodings.md; a run and an empty one
// precede them.
func TestRuns(t *testing.T) {
	r, err := newRuns([]byte{0x00, 5, 0x06, 7, 0x03, 0b10001000, 0b11000110, 0b11111010}, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{7, 7, 7, 0, 1, 2, 3, 4, 5, 6, 7} {
		if got, err := r.next(); got != want || err != nil {
			t.Fatalf("number %d: %d, error %v; want %d", i, got, err, want)
		}
	}
	if _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v at the end", err)
	}
	if _, err := newRuns(nil, 33); err == nil {
		t.Error("numbers of 33 bits are taken")
	}
}

// Numbers of the largest width, and a run with an excessive claimed length.
func TestRunsWide(t *testing.T) {
	r, _ := newRuns([]byte{0x03, 1, 0, 0, 0, 2, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff, 0x0f, 9, 0, 0, 0}, 32)
	for i, want := range []uint32{1, 0x80000002, 0xffffffff} {
		if got, err := r.next(); got != want || err != nil {
			t.Errorf("number %d: %x, error %v; want %x", i, got, err, want)
		}
	}
	r, _ = newRuns([]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 3}, 2)
	for range 1000 {
		if got, err := r.next(); got != 3 || err != nil {
			t.Fatalf("%d, error %v; want 3", got, err)
		}
	}
}

// The differences of Encodings.md: 7, 5, 3, 1, 2, 3, 4, 5 has the differences -2, -2, -2, 1, 1, 1,
// 1.
func TestDeltas(t *testing.T) {
	// Blocks of 8 in one part, 8 values, the first 7; least difference -2, two bits each: 0 0 0 3 3
	// 3 3.
	d, err := newDeltas([]byte{8, 1, 8, 14, 3, 2, 0b11000000, 0b00111111, 'x'})
	if err != nil {
		t.Fatal(err)
	}
	again, got := *d, []int64(nil)
	for range 8 {
		v, err := d.next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	if want := []int64{7, 5, 3, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if rest, err := again.rest(); string(rest) != "x" || err != nil {
		t.Errorf("what follows is %q, error %v", rest, err)
	}
	if _, err := d.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v at the end", err)
	}
	for _, b := range [][]byte{{}, {0, 1, 8, 14}, {8, 0, 8, 14}, {8, 3, 8, 14}, {8, 1, 0xff, 0xff, 0xff, 0xff, 0x7f,
		14}} {
		if _, err := newDeltas(b); err == nil {
			t.Errorf("%v is taken", b)
		}
	}
}

// A page expands to its claimed size, or it is an error, and never needs more memory.
func TestDecompress(t *testing.T) {
	want := bytes.Repeat([]byte("page"), 1<<20)
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for c, b := range map[codec][]byte{snappy: s2.EncodeSnappy(nil, want), zstds: w.EncodeAll(want, nil)} {
		got := make([]byte, len(want))
		if err := c.decompress(got, b); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: error %v, or other bytes", c, err)
		}
		for _, n := range []int{0, 100, len(want) - 1, len(want) + 1} {
			if err := c.decompress(make([]byte, n), b); err == nil {
				t.Errorf("%s: %d bytes are taken for %d", c, len(want), n)
			}
		}
		if err := c.decompress(make([]byte, len(want)), b[:len(b)/2]); err == nil {
			t.Errorf("%s: half of it is taken", c)
		}
	}
}
