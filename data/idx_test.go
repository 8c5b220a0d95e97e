package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// idxFile makes an IDX file of unsigned bytes with the elements 0, 1, 2, ... modulo 10.
func idxFile(dims ...int) []byte {
	raw, size := []byte{0, 0, idxUint8, byte(len(dims))}, 1
	for _, d := range dims {
		raw = binary.BigEndian.AppendUint32(raw, uint32(d))
		size *= d
	}
	for i := range size {
		raw = append(raw, byte(i%10))
	}
	return raw
}

func zipped(t testing.TB, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadIDX(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	raw := idxFile(3, 2, 4)
	for _, content := range [][]byte{raw, zipped(t, raw)} {
		writeFile(t, path, content)
		x, err := ReadIDX(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x.Dims, []int{3, 2, 4}) || !bytes.Equal(x.Data, raw[16:]) {
			t.Errorf("dims %v, data %v", x.Dims, x.Data)
		}
	}
	if _, err := ReadIDX(path + "-none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one about a missing file", err)
	}
}

func TestReadIDXRefuses(t *testing.T) {
	good := idxFile(3, 2, 4)
	packed := zipped(t, good)
	flipped := func(at int) []byte { b := slices.Clone(packed); b[at] ^= 0x55; return b }
	for _, c := range []struct {
		name    string
		content []byte
		magic   uint32
		want    string
	}{
		{"empty", nil, 0, "the end after byte 0, want a magic number of 4 bytes: the file is cut off"},
		{"cut in the header", good[:9], 0, "the end after byte 9, want dimension 1"},
		{"cut in the data", good[:20], 0, "20 bytes, want 40 for dimensions [3 2 4]: the file is cut off"},
		{"trailing", append(slices.Clone(good), 7), 0, "more bytes after byte 40, want the end"},
		{"trailing, zipped", zipped(t, append(slices.Clone(good), 7)), 0, "more bytes after byte 40"},
		{"labels for images", idxFile(5), idxImages,
			"magic 0x801 at byte 0, want 0x803: this is a label file; pass the images"},
		{"images for labels", good, idxLabels,
			"magic 0x803 at byte 0, want 0x801: this is an image file; pass the labels"},
		{"text", []byte("<html><body>"), idxImages, "want 0x803: this is not an IDX file"},
		{"floats", []byte{0, 0, 0x0D, 1, 0, 0, 0, 1, 0, 0, 0, 0}, 0, "elements are of type float"},
		{"unknown type", []byte{0, 0, 0x77, 1, 0, 0, 0, 1}, 0, "this is not an IDX file"},
		{"rank 0", []byte{0, 0, 8, 0}, 0, "rank 0"},
		{"rank 9", []byte{0, 0, 8, 9}, 0, "rank 9"},
		{"rank 2 for images", idxFile(2, 2), idxImages, "magic 0x802 at byte 0, want 0x803"},
		{"size 0", idxFile(3, 0, 4), 0, "dimensions [3 0], want sizes from 1 on"},
		{"huge", []byte{0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff}, 0, "dimensions [4294967295]"},
		{"huge product", []byte{0, 0, 8, 2, 0, 1, 0, 0, 0, 1, 0, 0}, 0, "dimensions [65536 65536]"},
		{"claims a gigabyte", []byte{0, 0, 8, 1, 0x40, 0, 0, 0, 1, 2}, 0, "10 bytes, want 1073741832"},
		{"gzip header", packed[:5], 0, "a gzip file with a bad header"},
		{"gzip cut", packed[:len(packed)-12], 0, "want intact gzip data"},
		{"gzip checksum", flipped(len(packed) - 6), 0,
			"damage after byte 40 of the content, want intact gzip data: gzip: invalid checksum"},
		{"gzip body", flipped(10), 0, "want intact gzip data"},
	} {
		_, err := decodeIDX("some/file", bytes.NewReader(c.content), c.magic)
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(),
			"data: some/file: ") {
			t.Errorf("%s: error %v, want a FormatError with %q", c.name, err, c.want)
		}
	}
}

// An I/O error is not a format error.
func TestReadIDXPassesOnDiskErrors(t *testing.T) {
	raw := idxFile(3, 2, 4)
	for _, good := range []int{0, 9, 20, len(raw)} {
		broken := errors.New("disk on fire")
		_, err := decodeIDX("x", io.MultiReader(bytes.NewReader(raw[:good]), iotest.ErrReader(broken)), 0)
		if _, ok := errors.AsType[*FormatError](err); !errors.Is(err, broken) || ok {
			t.Errorf("after %d bytes: error %v, want that of the disk", good, err)
		}
	}
}

// For any input: no panic, memory in proportion to the content, and accepted data is consistent.
func FuzzIDX(f *testing.F) {
	f.Add(idxFile(3, 2, 4))
	f.Add(idxFile(7))
	f.Add(zipped(f, idxFile(2, 2)))
	f.Add(zipped(f, idxFile(2, 2))[:15])
	f.Add([]byte{0, 0, 8, 1, 0x40, 0, 0, 0, 1})
	f.Add([]byte{0x1f, 0x8b})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, err := decodeIDX("fuzz", bytes.NewReader(raw), 0)
		if err != nil {
			if _, ok := errors.AsType[*FormatError](err); !ok {
				t.Errorf("error %v is no FormatError", err)
			}
			return
		}
		size := 1
		for _, d := range x.Dims {
			size *= d
		}
		// deflate expands at most 1032 times; growth doubles it
		if size != len(x.Data) || cap(x.Data) > 2200*len(raw)+1024 {
			t.Errorf("dims %v, %d elements, room for %d, from %d bytes", x.Dims, len(x.Data), cap(x.Data), len(raw))
		}
	})
}
