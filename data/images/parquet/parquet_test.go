package parquet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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

// isPicture reports whether image i of a source is number n of the set in testdata.
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

// Files written by PyArrow with three codecs: in order, backwards and concurrently.
func TestShardsOfHuggingFace(t *testing.T) {
	for _, path := range []string{"testdata", "testdata/data", "testdata/data/*.parquet"} {
		s := set(t, path)
		if s.Kind != "parquet" || s.Train.Len() != 20 || s.Test.Len() != 4 ||
			!slices.Equal(s.Classes, []string{"ant", "bee", "cat"}) {
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
	for i, want := range map[int]string{1: "train-00000-of-00002.parquet/bee_1.JPEG",
		4: "train-00000-of-00002.parquet/row group 1 row 0", 19: "train-00001-of-00002.parquet/bee_19.JPEG"} {
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

func TestRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"no-columns":     "the columns id (INT64), text (BYTE_ARRAY), want image.bytes (BYTE_ARRAY) and label (INT64)",
		"no-label":       "the columns image (BYTE_ARRAY), want",
		"label-of-bytes": "label (BYTE_ARRAY), want",
		"null-label":     "row 1 of row group 0 with label -1",
		"negative":       "row 0 of row group 0 with label -1, want 0 to",
		"huge":           "with label 1099511627776",
		"no-row":         "no row",
		"brotli":         "column image with the compression BROTLI, want compression SNAPPY",
		"split":          "the encoding BYTE_STREAM_SPLIT of INT64, want",
	} {
		_, err := images.Open("testdata/cases/"+name+".parquet", images.Options{})
		var format *images.FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want a FormatError with %q", name, err, want)
		}
	}
}

// A row without an image, or with a bad one, is an error of that image alone; classes are numbers
// if the file has no names.
func TestBadRows(t *testing.T) {
	s := set(t, "testdata/cases/bad-rows.parquet")
	if len(s.Classes) != 11 || s.Classes[10] != "10" {
		t.Errorf("classes %v", s.Classes)
	}
	var p images.RGB
	for i, want := range []string{"", "bad-rows.parquet/row group 0 row 1: a row without a picture",
		"row 2: neither JPEG, PNG, GIF, WebP nor BMP", ""} {
		err := s.Train.Image(&p, i)
		var bad *images.PictureError
		if want == "" && err != nil || want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), want)) {
			t.Errorf("picture %d: error %v, want %q", i, err, want)
		}
	}
}

// The same images in all supported variants: codecs, encodings, dictionaries that end in the
// middle, pages of both versions, with checksums and an index, and after a list with more values
// than rows.
func TestVariants(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/way-*.parquet")
	if err != nil || len(files) != 6 {
		t.Fatalf("files %v, error %v; want six", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := set(t, file)
			if s.Train.Len() != 24 {
				t.Fatalf("%d pictures, want 24", s.Train.Len())
			}
			for _, i := range []int{23, 0, 1, 2, 22, 21, 3, 4, 5, 16, 17, 18, 12, 11, 20} {
				isPicture(t, s.Train, i, i)
				want := fmt.Sprintf("%s/%s_%d.JPEG", filepath.Base(file), []string{"ant", "bee", "cat"}[i%3], i)
				if got := s.Train.(images.Named).Name(i); i%4 > 0 && got != want {
					t.Errorf("picture %d is %s, want %s", i, got, want)
				}
			}
		})
	}
}

// A file truncated anywhere, or with any byte changed, gives an error or a set, but no panic.
func TestDamage(t *testing.T) {
	for _, name := range []string{"way-gzip", "way-lz4", "way-delta", "way-mixed"} {
		b, err := os.ReadFile("testdata/cases/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "train.parquet")
		refused := 0
		try := func(b []byte) {
			if !readable(t, path, b) {
				refused++
			}
		}
		for cut := 0; cut < len(b); cut += len(b)/30 + 1 {
			try(b[:cut])
		}
		for at := 0; at < len(b); at += len(b)/100 + 1 {
			c := slices.Clone(b)
			c[at] ^= byte(1 << (at % 8))
			try(c)
		}
		if refused < 30 {
			t.Errorf("%s: %d damaged files refused, want at least the 30 cut short", name, refused)
		}
	}
}

// readable writes a file and reads all its images. It reports whether it could be opened.
func readable(t testing.TB, path string, b []byte) bool {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := open(path, images.Options{MaxPixels: 1 << 16})
	if err != nil {
		return false
	}
	defer s.Close()
	for i := range min(s.Train.Len(), 100) {
		_ = s.Train.Image(new(images.RGB), i) // an error is accepted as well
	}
	return true
}

// For any file: no panic.
func FuzzParquet(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.parquet") // the pattern is well-formed
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { readable(t, filepath.Join(t.TempDir(), "train.parquet"), b) })
}
