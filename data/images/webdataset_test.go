package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// shards makes a WebDataset of two training shards and one for validation. Class 10 comes after 9,
// and class 3 has no picture.
func shards(t testing.TB) string {
	return folderOf(t,
		file{"shard-train-000.tar", tarOf(t, file{"a/1.jpg", photo(t, 2)}, file{"a/1.cls", []byte("10\n")},
			file{"a/2.cls", []byte("2")}, file{"a/2.png", photo(t, 1)}, file{"a/2.json", []byte(`{"label": 5}`)})},
		file{"shard-train-001.tar", tarOf(t, file{"b.jpg", photo(t, 4)},
			file{"b.json", []byte(`{"caption": "x", "label": 9}`)})},
		file{"shard-val-000.tar", tarOf(t, file{"c.json", []byte(`{"label": "2"}`)}, file{"c.jpg", photo(t, 6)},
			file{"c.txt", []byte("x")})})
}

func TestWebDataset(t *testing.T) {
	dir := shards(t)
	want := "shard-train-000.tar/a/2.png is 2\nshard-train-001.tar/b.jpg is 9\nshard-train-000.tar/a/1.jpg is 10\n"
	for _, path := range []string{dir, filepath.Join(dir, "*.tar"), filepath.Join(dir, "shard-train-{000..001}.tar")} {
		s := open(t, path)
		got := ""
		for i := range s.Train.Len() {
			got += fmt.Sprintf("%s is %d\n", s.Train.Name(i), s.Train.Label(i))
		}
		if got != want || len(s.Classes) != 11 || s.Kind != "WebDataset" {
			t.Errorf("%s: %s with %d classes holds\n%s, want\n%s", path, s.Kind, len(s.Classes), got, want)
		}
		if strings.Contains(path, "{") == (s.Test != nil) {
			t.Errorf("%s: test pictures %v", path, s.Test)
		}
		list(t, s.Train)
	}
	if s := open(t, filepath.Join(dir, "shard-val-000.tar")); s.Train != nil || s.Test.Len() != 1 ||
		s.Test.Label(0) != 2 {
		t.Errorf("the shard of validation alone: train %v, test %v", s.Train, s.Test)
	}
}

func TestWebDatasetRefuses(t *testing.T) {
	photo := photo(t, 2)
	for name, c := range map[string]struct {
		files []file
		want  string
	}{
		"no label": {[]file{{"1.cls", []byte("1")}, {"1.jpg", photo}, {"2.jpg", photo}},
			"picture 2.jpg without a label, want 2.cls"},
		"two pictures": {[]file{{"1.cls", []byte("1")}, {"1.jpg", photo}, {"1.png", photo}},
			"pictures 1.jpg and 1.png, want one picture"},
		"negative":   {[]file{{"1.jpg", photo}, {"1.cls", []byte("-1")}}, "member 1.cls: label -1"},
		"huge":       {[]file{{"1.jpg", photo}, {"1.cls", []byte("99999999999")}}, "member 1.cls: label 99999999999"},
		"bad JSON":   {[]file{{"1.jpg", photo}, {"1.json", []byte("{")}}, "member 1.json: unexpected end"},
		"odd JSON":   {[]file{{"1.jpg", photo}, {"1.json", []byte(`{"label": [1]}`)}}, "member 1.json: label [1]"},
		"long label": {[]file{{"1.jpg", photo}, {"1.cls", make([]byte, 2<<20)}}, "member 1.cls of 2097152 bytes"},
		"no picture": {[]file{{"1.cls", []byte("1")}}, "no picture"},
	} {
		_, err := Open(written(t, "x.tar", tarOf(t, c.files...)), Options{})
		if _, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want a FormatError with %q", name, err, c.want)
		}
	}
}

// More shards than are kept open can be read.
func TestWebDatasetOfManyShards(t *testing.T) {
	var files []file
	for i := range maxOpen + 6 {
		files = append(files, file{fmt.Sprintf("s-%03d.tar", i), tarOf(t, file{"x.jpg", photo(t, 2*(i%6))},
			file{"x.cls", []byte(fmt.Sprint(i % 6))})})
	}
	s := open(t, folderOf(t, files...))
	if s.Train.Len() != maxOpen+6 {
		t.Fatalf("%d pictures", s.Train.Len())
	}
	for line := range strings.Lines(list(t, s.Train)) {
		var name string
		var label, w, h, red int
		if _, err := fmt.Sscanf(line, "%s is %d, %d×%d [%d", &name, &label, &w, &h, &red); err != nil ||
			red < 40*label-9 || red > 40*label+9 {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// If there are shards of val and of test, those of test are ignored, with a note.
func TestWebDatasetPrefersVal(t *testing.T) {
	dir := shards(t)
	more := file{"shard-test-000.tar", tarOf(t, file{"z.jpg", photo(t, 2)}, file{"z.cls", []byte("-1")})}
	if err := os.WriteFile(filepath.Join(dir, more.name), more.content, 0o644); err != nil {
		t.Fatal(err)
	}
	if s := open(t, dir); s.Test.Len() != 1 || !strings.Contains(strings.Join(s.Notes, "\n"),
		"ignored in favour of the shards of val: "+filepath.Join(dir, more.name)) {
		t.Errorf("%d test pictures, notes %q", s.Test.Len(), s.Notes)
	}
}

// For any label: a valid number, a short name, or an error.
func FuzzLabel(f *testing.F) {
	for _, s := range []string{"3", "-1", "1e99", "cat", `{"label": 3}`, `{"label": "cat"}`, `{"cls": 1e3}`,
		`{"label": [1]}`, "{"} {
		f.Add("cls", []byte(s))
		f.Add("json", []byte(s))
	}
	f.Fuzz(func(t *testing.T, ext string, text []byte) {
		class, err := labelOf(ext, text)
		if n, e := strconv.Atoi(class); err == nil && (len(class) > 256 || e == nil && (n < 0 || n >= maxClasses)) {
			t.Errorf("%q as %s: class %q", text, ext, class)
		}
	})
}

func TestPatterns(t *testing.T) {
	files, err := expand("a-{008..011}/{1..2}.tar")
	if err != nil || len(files) != 8 || files[0] != "a-008/1.tar" || files[7] != "a-011/2.tar" {
		t.Errorf("%v, %v", files, err)
	}
	dir := folderOf(t, zoo(t)...)
	for pattern, want := range map[string]string{
		"x{9..1}.tar": "the range {9..1}", "x{0..999999999}.tar": "the range",
		"{1..9999}{1..9999}.tar":    "a pattern for very many files",
		filepath.Join(dir, "*.tar"): "no file of such a name", filepath.Join(dir, "{0..1}.tar"): "no such file",
		filepath.Join(dir, "READ*"): "content that is not a tar",
	} {
		if _, err := Open(pattern, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", pattern, err, want)
		}
	}
}
