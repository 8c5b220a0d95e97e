package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"fspda/data/images"
)

func set(t testing.TB, path string) *images.Set {
	t.Helper()
	s, err := images.Open(path, images.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// isPicture tells whether picture i of a source is number n of the set in testdata.
func isPicture(t testing.TB, s images.Source, i, n int) {
	t.Helper()
	var p images.RGB
	if err := s.Image(&p, i); err != nil {
		t.Error(err)
		return
	}
	red := 0
	for k := 0; k < len(p.Pix); k += 3 {
		red += int(p.Pix[k])
	}
	if d := red/99 - 10*n; p.W != 11 || p.H != 9 || d < -3 || d > 3 || s.Label(i) != int32(n%3) {
		t.Errorf("picture %d: %d×%d, mean %d, label %d; want 11×9, %d, %d", i, p.W, p.H, red/99, s.Label(i), 10*n, n%3)
	}
}

// Files that PyArrow wrote, of three kinds of compression: in order, backwards and from many goroutines.
func TestShardsOfHuggingFace(t *testing.T) {
	for _, path := range []string{"testdata", "testdata/data", "testdata/data/*.parquet"} {
		s := set(t, path)
		if s.Kind != "parquet" || s.Train.Len() != 20 || s.Test.Len() != 4 || !slices.Equal(s.Classes, []string{"ant", "bee", "cat"}) {
			t.Fatalf("%s: %s of %d and %d pictures, classes %v", path, s.Kind, s.Train.Len(), s.Test.Len(), s.Classes)
		}
		for i := range 20 {
			isPicture(t, s.Train, i, i)
		}
		for i := 19; i >= 0; i-- {
			isPicture(t, s.Train, i, i)
		}
		for i := range 4 {
			isPicture(t, s.Test, i, 20+i)
		}
	}
	s := set(t, "testdata/data/train-{00000..00001}-of-00002.parquet")
	if s.Test != nil {
		t.Error("test pictures out of nowhere")
	}
	for i, want := range map[int]string{1: "train-00000-of-00002.parquet/bee_1.JPEG", 4: "train-00000-of-00002.parquet/row group 1 row 0", 19: "train-00001-of-00002.parquet/bee_19.JPEG"} {
		if got := s.Train.(images.Named).Name(i); got != want {
			t.Errorf("picture %d is %s, want %s", i, got, want)
		}
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for k := range 60 {
				i := (k*7 + g*5) % 20
				isPicture(t, s.Train, i, i)
			}
		})
	}
	wg.Wait()
}

func TestOneFile(t *testing.T) {
	s := set(t, "testdata/data/validation-00000-of-00001.parquet")
	if s.Train != nil || s.Test.Len() != 4 {
		t.Errorf("train %v, %d test pictures", s.Train, s.Test.Len())
	}
}

// table writes a file of one row group with optional columns.
func table(t testing.TB, columns map[string]any) string {
	t.Helper()
	var fields schema.FieldList
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range columns {
			yield(n)
		}
	})
	for _, n := range names {
		kind := parquet.Types.ByteArray
		switch columns[n].(type) {
		case []int64:
			kind = parquet.Types.Int64
		case []int32:
			kind = parquet.Types.Int32
		}
		fields = append(fields, schema.MustPrimitive(schema.NewPrimitiveNode(n, parquet.Repetitions.Optional, kind, -1, -1)))
	}
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)))
	g, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		c, err := g.NextColumn()
		if err == nil {
			err = fillColumn(c, columns[n])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(g.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "train.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// fillColumn writes values; an empty byte array and a label of -7 are null.
func fillColumn(c file.ColumnChunkWriter, values any) (err error) {
	var defs []int16
	level := func(ok bool) bool {
		if ok {
			defs = append(defs, 1)
		} else {
			defs = append(defs, 0)
		}
		return ok
	}
	switch v := values.(type) {
	case []int64:
		v = slices.DeleteFunc(slices.Clone(v), func(n int64) bool { return !level(n != -7) })
		_, err = c.(*file.Int64ColumnChunkWriter).WriteBatch(v, defs, nil)
	case []int32:
		v = slices.DeleteFunc(slices.Clone(v), func(n int32) bool { return !level(n != -7) })
		_, err = c.(*file.Int32ColumnChunkWriter).WriteBatch(v, defs, nil)
	case []parquet.ByteArray:
		v = slices.DeleteFunc(slices.Clone(v), func(b parquet.ByteArray) bool { return !level(len(b) > 0) })
		_, err = c.(*file.ByteArrayColumnChunkWriter).WriteBatch(v, defs, nil)
	default:
		err = fmt.Errorf("values of %T", values)
	}
	return errors.Join(err, c.Close())
}

func TestRefuses(t *testing.T) {
	pictures := []parquet.ByteArray{[]byte("x"), []byte("y")}
	for name, c := range map[string]struct {
		columns map[string]any
		want    string
	}{
		"no columns":     {map[string]any{"text": pictures, "id": []int64{1, 2}}, "the columns id (INT64), text (BYTE_ARRAY), want image.bytes (BYTE_ARRAY) and label (INT64)"},
		"no label":       {map[string]any{"image": pictures}, "the columns image (BYTE_ARRAY), want"},
		"label of bytes": {map[string]any{"image": pictures, "label": pictures}, "label (BYTE_ARRAY), want"},
		"a null label":   {map[string]any{"image": pictures, "label": []int64{1, -7}}, "row 1 of row group 0 with label -1"},
		"negative":       {map[string]any{"image": pictures, "label": []int32{-1, 0}}, "row 0 of row group 0 with label -1, want 0 to"},
		"huge":           {map[string]any{"image": pictures, "label": []int64{0, 1 << 40}}, "with label 1099511627776"},
		"no row":         {map[string]any{"image": []parquet.ByteArray{}, "label": []int64{}}, "no row"},
	} {
		_, err := images.Open(table(t, c.columns), images.Options{})
		var format *images.FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want a FormatError with %q", name, err, c.want)
		}
	}
}

// A row without a picture, or with a bad one, is an error of that picture alone; classes are numbers where the file has no names.
func TestBadRows(t *testing.T) {
	good, err := set(t, "testdata").Train.(images.Encoded).Encoded(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := set(t, table(t, map[string]any{"img": []parquet.ByteArray{good, nil, []byte("junk"), good}, "labels": []int32{0, 2, 10, 3}}))
	if len(s.Classes) != 11 || s.Classes[10] != "10" {
		t.Errorf("classes %v", s.Classes)
	}
	var p images.RGB
	for i, want := range []string{"", "train.parquet/row group 0 row 1: a row without a picture", "row 2: neither JPEG nor PNG", ""} {
		err := s.Train.Image(&p, i)
		var bad *images.PictureError
		if want == "" && err != nil || want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), want)) {
			t.Errorf("picture %d: error %v, want %q", i, err, want)
		}
	}
}

// Whatever a file holds: no panic.
func FuzzParquet(f *testing.F) {
	files, _ := filepath.Glob("testdata/data/*.parquet") // the pattern is well-formed
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "train.parquet")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := open(path, images.Options{MaxPixels: 1 << 16})
		if err != nil {
			return
		}
		defer s.Close()
		for i := range min(s.Train.Len(), 100) {
			_ = s.Train.Image(new(images.RGB), i) // an error is as good as a picture
		}
	})
}
