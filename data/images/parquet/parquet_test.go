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
		if got := s.Train.Name(i); got != want {
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
		"no-columns": "the columns id (integers), text (strings or bytes), want image.bytes or image, img, jpg, png",
		"no-label":   "the columns image (strings or bytes), want",
		"huge":       "row 1: label 1099511627776, want 0 to 1048575, or -1 or null for none",
		"no-row":     "no row",
		"none-labelled": "no row with a label, and 2 without, want at least one picture with its label: other " +
			"columns can be named with --image-column and --label-column",
	} {
		_, err := images.Open("testdata/cases/"+name+".parquet", images.Options{})
		if _, ok := errors.AsType[*images.FormatError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want a FormatError with %q", name, err, want)
		}
	}
	for _, c := range []struct {
		path string
		o    images.Options
		want string
	}{
		{"testdata/cases/other-names.parquet", images.Options{ImageColumn: "foto"},
			"want foto (strings or bytes) and label"},
		{"testdata/cases/other-names.parquet", images.Options{ImageColumn: "photo", LabelColumn: "photo"},
			"and photo ("},
		{"../testdata", images.Options{LabelColumn: "x"}, "leave out --image-column"},
	} {
		if _, err := images.Open(c.path, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.path, err, c.want)
		}
	}
}

// Labels may be integers, strings or booleans; rows without one are left out with a note.
func TestLabels(t *testing.T) {
	for name, want := range map[string]struct {
		o       images.Options
		classes []string
		labels  []int32
		notes   int
	}{
		"strings":        {classes: []string{"ant", "cat", "dog"}, labels: []int32{2, 1, 0}, notes: 1},
		"booleans":       {classes: []string{"false", "true"}, labels: []int32{1, 0, 1}},
		"unlabelled":     {classes: []string{"0", "1"}, labels: []int32{0, 1}, notes: 1},
		"negative":       {classes: []string{"0"}, labels: []int32{0}, notes: 1},
		"null-label":     {classes: []string{"0", "1"}, labels: []int32{1}, notes: 1},
		"label-of-bytes": {classes: []string{"x", "y"}, labels: []int32{0, 1}},
		"brotli":         {classes: []string{"0", "1"}, labels: []int32{0, 1}},
		"split":          {classes: []string{"0", "1"}, labels: []int32{0, 1}},
		"features":       {classes: []string{"no", "yes"}, labels: []int32{1, 0, 1}},
		"other-names": {o: images.Options{ImageColumn: "photo", LabelColumn: "kind"}, classes: []string{"0", "1", "2"},
			labels: []int32{2, 1, 0}},
	} {
		s, err := images.Open("testdata/cases/"+name+".parquet", want.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var labels []int32
		for i := range s.Train.Len() {
			labels = append(labels, s.Train.Label(i))
		}
		if !slices.Equal(s.Classes, want.classes) || !slices.Equal(labels, want.labels) || len(s.Notes) != want.notes {
			t.Errorf("%s: classes %v, labels %v, notes %v", name, s.Classes, labels, s.Notes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := set(t, "testdata/cases/unlabelled.parquet")
	var p images.RGB
	if err := s.Train.Image(&p, 1); err != nil || int(p.Pix[0]) < 20 {
		t.Errorf("the second picture with a label is not the fourth row: %v", err)
	}
}

// layout copies shards of testdata to a folder by new names.
func layout(t *testing.T, names map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for to, from := range names {
		b, err := os.ReadFile(filepath.Join("testdata", from))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The layouts of repositories and of their converted branches, and folders of save_to_disk.
func TestLayouts(t *testing.T) {
	const train, more, val = "data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet",
		"data/validation-00000-of-00001.parquet"
	for _, names := range []map[string]string{
		{"default/train/0000.parquet": train, "default/train/0001.parquet": more,
			"default/validation/0000.parquet": val},
		{"train/0000.parquet": train, "train/0001.parquet": more, "test/0000.parquet": val},
		{"full/train-0.parquet": train, "full/train-1.parquet": more, "full/test-0.parquet": val, "README/x.md": train},
		{"a.parquet": train, "b.parquet": more, "valid.parquet": val},
		{"data/train/a.parquet": train, "data/train/b.parquet": more, "data/valid/a.parquet": val},
	} {
		s := set(t, layout(t, names))
		if s.Kind != "parquet" || s.Train == nil || s.Train.Len() != 20 || s.Test == nil || s.Test.Len() != 4 {
			t.Errorf("%v: %v", names, s)
			continue
		}
		isPicture(t, s.Train, 19, 19)
		isPicture(t, s.Test, 0, 20)
	}
	two := layout(t, map[string]string{"cola/train/0.parquet": train, "sst2/train/0.parquet": train})
	if _, err := openTables(two); err == nil || !strings.Contains(err.Error(),
		"shards in cola and in sst2, want one set of pictures: name one of these folders") {
		t.Errorf("two sets: %v", err)
	}
	unlabelled := set(t, layout(t, map[string]string{"train.parquet": "cases/unlabelled.parquet",
		"test.parquet": "cases/none-labelled.parquet"}))
	if unlabelled.Test != nil || len(unlabelled.Notes) != 2 {
		t.Errorf("test split without labels: %v, notes %v", unlabelled.Test, unlabelled.Notes)
	}
}

func openTables(path string) (*images.Set, error) { return open(path, ".parquet", images.Options{}) }

// A folder that datasets.DatasetDict.save_to_disk wrote, and one of its tables.
func TestSaveToDisk(t *testing.T) {
	for path, want := range map[string][2]int{"testdata/saved": {5, 2}, "testdata/saved/test": {2, 0},
		"testdata/saved/train/data-00000-of-00001.arrow": {5, 0}} {
		s := set(t, path)
		if s.Kind != KindArrow || s.Train.Len() != want[0] || (s.Test == nil) != (want[1] == 0) ||
			!slices.Equal(s.Classes, []string{"ant", "bee", "cat"}) {
			t.Errorf("%s: %s of %d, classes %v", path, s.Kind, s.Train.Len(), s.Classes)
		}
		first := 0
		if want[0] == 2 {
			first = 5
		}
		for i := range s.Train.Len() {
			isPicture(t, s.Train, i, first+i)
		}
		if s.Test != nil {
			isPicture(t, s.Test, 1, 6)
		}
	}
	s := set(t, "testdata/saved")
	if got := s.Train.Name(4); got != "data-00000-of-00001.arrow/bee_4.JPEG" {
		t.Errorf("picture 4 is %s", got)
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
	for i, want := range []string{"",
		"bad-rows.parquet row 1: a row without a picture: its bytes are not in the file",
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
				if got := s.Train.Name(i); i%4 > 0 && got != want {
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
	s, err := open(path, ".parquet", images.Options{MaxPixels: 1 << 16})
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

// Labels of testing that are those of training in another form of Unicode are the same classes.
func TestLabelsInFormsOfUnicode(t *testing.T) {
	train := &rows{kind: texts, names: map[string]int32{"dog": 0, "caf\u00e9": 1}, labels: []int32{0, 1, 1},
		at: make([]position, 3)}
	test := &rows{kind: texts, names: map[string]int32{"cafe\u0301": 0, "dog": 1}, labels: []int32{0, 1},
		at: make([]position, 2)}
	names, err := classes("set", []*rows{train, test})
	if err != nil || !slices.Equal(names, []string{"caf\u00e9", "dog"}) ||
		!slices.Equal(train.labels, []int32{1, 0, 0}) || !slices.Equal(test.labels, []int32{0, 1}) {
		t.Errorf("classes %q, labels %v and %v, %v", names, train.labels, test.labels, err)
	}
	stored := func(name string) *rows {
		return &rows{kind: integers, classes: []string{name, "dog"}, labels: []int32{0, 1}, at: make([]position, 2)}
	}
	if _, err := classes("set", []*rows{stored("caf\u00e9"), stored("cafe\u0301")}); err != nil {
		t.Error(err)
	}
	test.names, test.labels = map[string]int32{"cafe": 0}, []int32{0}
	if _, err := classes("set", []*rows{train, test}); err == nil {
		t.Error("another name was taken for a class")
	}
}
