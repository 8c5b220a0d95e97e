package arrow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// written returns a file of two batches.
func written(t testing.TB) []byte {
	t.Helper()
	fields := []Field{{Name: "label", Kind: Int, Bits: 32, Signed: true}, {Name: "pixels", Kind: Bytes, Bits: 32},
		{Name: "name", Kind: String, Bits: 32}}
	var b bytes.Buffer
	w, err := NewWriter(&b, fields, [][2]string{{"maker", "test"}, {"empty", ""}})
	if err != nil {
		t.Fatal(err)
	}
	columns := make([]*Column, len(fields))
	for i, f := range fields {
		columns[i] = &Column{Field: f}
	}
	for _, rows := range [][]string{{"one", "", "three"}, {"vier"}} {
		for i, s := range rows {
			columns[0].AppendInt(int32(-i))
			columns[1].AppendBytes(bytes.Repeat([]byte(s), 20))
			columns[2].AppendBytes([]byte(s))
		}
		if err := w.Write(columns...); err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			c.Reset()
		}
	}
	if err := w.Close(); err != nil || w.Size() != int64(b.Len()) {
		t.Fatal(err, w.Size(), b.Len())
	}
	return b.Bytes()
}

// What is written is read again, and its bytes are those that PyArrow has read
// (testdata/make.py FILE).
func TestWriter(t *testing.T) {
	b := written(t)
	f, err := Open(b)
	if err != nil {
		t.Fatal(err)
	}
	batches, err := f.Batches(0, 1, 2)
	if err != nil || len(batches) != 2 || f.Metadata("maker") != "test" {
		t.Fatalf("%d batches, maker %q, %v", len(batches), f.Metadata("maker"), err)
	}
	var names []string
	for _, c := range batches {
		for i := range c[0].Len() {
			name := string(c[2].Bytes(i))
			names = append(names, name)
			if c[0].Int(i) != int64(-i) || string(c[1].Bytes(i)) != strings.Repeat(name, 20) || c[1].IsNull(i) {
				t.Errorf("row %s: %d, %q", name, c[0].Int(i), c[1].Bytes(i))
			}
		}
	}
	if !slices.Equal(names, []string{"one", "", "three", "vier"}) {
		t.Errorf("rows %q", names)
	}
	sum := sha256.Sum256(b)
	const want = "d456a12d5bab56afc14d651daade930e0aa5b00c050ff9040993dc3f1608171b"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("SHA-256 %s of a written file, want %s", got, want)
		if path := os.Getenv("FSPDA_TEST_WRITE"); path != "" { // for testdata/make.py
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rows returns a column as text: integers, strings and - for null.
func rows(f *File, name string) (all []string, err error) {
	k := slices.IndexFunc(f.Fields(), func(f Field) bool { return f.Name == name })
	batches, err := f.Batches(k)
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		c := b[0]
		for i := range c.Len() {
			switch {
			case c.IsNull(i):
				all = append(all, "-")
			case c.Kind == Bytes || c.Kind == String:
				all = append(all, string(c.Bytes(i)))
			default:
				all = append(all, fmt.Sprint(c.Int(i)))
			}
		}
	}
	return all, nil
}

// Columns of all kinds, with null and in structs, beside columns that are skipped.
func TestPyArrow(t *testing.T) {
	for _, name := range []string{"stream.arrow", "file.arrow"} {
		f, err := Open(read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for column, want := range map[string]string{
			"image.bytes": " - - bbb bbbb", "image.path": "p0 - p2 p3 p4", "label": "0 1 - -1 1099511627776",
			"flag": "1 0 - 1 1", "large": "s0 s1 s2 s3 s4", "u8": "0 255 3 4 5", "i16": "0 -2 3 4 -5",
		} {
			if got, err := rows(f, column); err != nil || strings.Join(got, " ") != want {
				t.Errorf("%s: %s is %q, want %q; %v", name, column, got, want, err)
			}
		}
		var other []string
		for _, f := range f.Fields() {
			if f.Kind == Other {
				other = append(other, f.Name)
			}
		}
		if got := strings.Join(other, " "); got != "list vector map none time price" {
			t.Errorf("%s: columns that cannot be read: %s", name, got)
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, want := range map[string]string{"dictionary.arrow": "want a batch without a dictionary",
		"compressed.arrow": "it is compressed", "view.arrow": "column v of type 24"} {
		f, err := Open(read(t, name))
		if err == nil {
			_, err = f.Batches(0)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// readAll reads every row of every column.
func readAll(b []byte) error {
	f, err := Open(b)
	if err != nil {
		return err
	}
	for _, field := range f.Fields() {
		if field.Kind == Other {
			continue
		}
		if _, err := rows(f, field.Name); err != nil {
			return err
		}
	}
	return nil
}

// A file cut off anywhere, or with any byte changed, is an error or a table, but no panic.
func TestDamage(t *testing.T) {
	for _, name := range []string{"stream.arrow", "file.arrow"} {
		b := read(t, name)
		refused := 0
		for i := range b {
			c := slices.Clone(b)
			c[i] ^= 1 << (i % 8)
			for _, damaged := range [][]byte{b[:i], c} {
				if readAll(damaged) != nil {
					refused++
				}
			}
		}
		if refused < len(b)/2 {
			t.Errorf("%s: %d of %d damaged files refused", name, refused, 2*len(b))
		}
	}
}

func FuzzArrow(f *testing.F) {
	for _, name := range []string{"stream.arrow", "file.arrow", "dictionary.arrow", "compressed.arrow"} {
		f.Add(read(f, name))
	}
	f.Add(written(f))
	f.Fuzz(func(_ *testing.T, b []byte) { _ = readAll(b) })
}
