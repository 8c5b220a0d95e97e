package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fspda/internal/testing/imagetest"
)

// file is a file for a folder or a tar. A name that ends in a slash is a folder.
type file struct {
	name    string
	content []byte
}

// photo returns a small image of a unique colour.
func photo(t testing.TB, n int) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 12, 10))
	for i := range 120 {
		m.Set(i%12, i/12, color.RGBA{uint8(20 * n), uint8(i), uint8(200 - 10*n), 255})
	}
	if n%2 == 1 {
		return imagetest.PNG(t, m)
	}
	return imagetest.JPEG(t, m, 90)
}

func folderOf(t testing.TB, files ...file) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		p := filepath.Join(dir, filepath.FromSlash(f.name))
		if strings.HasSuffix(f.name, "/") {
			if err := os.MkdirAll(p, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func tarOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: 0o644}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func written(t testing.TB, name string, content []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t testing.TB, path string) *Set {
	t.Helper()
	s, err := Open(path, Options{})
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

// zoo is a small set of class folders, unsorted, with typical stray files.
func zoo(t testing.TB) []file {
	return []file{
		{"train/", nil}, {"train/cat/", nil}, {"train/dog/", nil},
		{"train/dog/b.PNG", photo(t, 1)}, {"train/dog/a.JPEG", photo(t, 2)}, {"train/cat/z.jpg", photo(t, 4)},
		{"train/cat/._z.jpg", []byte("of a Mac")}, {"train/cat/notes.txt", []byte("x")}, {"train/ant/more/x.jpg",
			photo(t, 6)},
		{"val/dog/1.jpg", photo(t, 8)}, {"val/cat/2.png", photo(t, 3)}, {"README", []byte("x")},
	}
}

// list prints a source: names, labels and pixels.
func list(t testing.TB, s Source) string {
	t.Helper()
	var b strings.Builder
	for i := range s.Len() {
		var p RGB
		if err := s.Image(&p, i); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s is %d, %d×%d %v\n", s.Name(i), s.Label(i), p.W, p.H, p.Pix[:9])
	}
	return b.String()
}

// A folder and a tar of it are the same list, in any order of the tar.
func TestFoldersAndTarsAreTheSame(t *testing.T) {
	files := zoo(t)
	folder := open(t, folderOf(t, files...))
	slices.Reverse(files)
	for i := range files {
		files[i].name = "./" + files[i].name
	}
	archive := open(t, written(t, "zoo.tar", tarOf(t, files...)))
	if folder.Kind != "class folders" || archive.Kind != "tar of class folders" {
		t.Errorf("kinds %q and %q", folder.Kind, archive.Kind)
	}
	if !slices.Equal(folder.Classes, []string{"ant", "cat", "dog"}) || !slices.Equal(archive.Classes, folder.Classes) {
		t.Errorf("classes %v and %v", folder.Classes, archive.Classes)
	}
	train := list(t, folder.Train)
	if list(t, archive.Train) != train || list(t, archive.Test) != list(t, folder.Test) {
		t.Errorf("the folder holds\n%s%s\nthe tar\n%s%s", train, list(t, folder.Test), list(t, archive.Train),
			list(t, archive.Test))
	}
	for i, want := range []string{"train/ant/more/x.jpg is 0", "train/cat/z.jpg is 1", "train/dog/a.JPEG is 2",
		"train/dog/b.PNG is 2, 12×10 [20 0 190"} {
		if line := strings.Split(train, "\n")[i]; !strings.HasPrefix(line, want) {
			t.Errorf("line %d is %q, want %q", i, line, want)
		}
	}
	notes := strings.Join(folder.Notes, "\n")
	if !strings.Contains(notes, "class ant of train has no picture in val") ||
		!strings.Contains(notes, "1 files that are no") {
		t.Errorf("notes %q", notes)
	}
}

func TestOpenClassFoldersWithoutASplit(t *testing.T) {
	files := []file{{"dog/a.jpg", photo(t, 2)}, {"cat/b.jpg", photo(t, 4)}}
	for _, path := range []string{folderOf(t, files...), written(t, "x.tar", tarOf(t, files...))} {
		if s := open(t, path); s.Train.Len() != 2 || s.Test != nil || s.Train.Label(1) != 1 {
			t.Errorf("%s: %d pictures, test %v", s.Kind, s.Train.Len(), s.Test)
		}
	}
}

// ImageNet has a flat test folder without labels in addition to val.
func TestOpenPrefersVal(t *testing.T) {
	files := append(zoo(t), file{"test/1.jpg", photo(t, 2)})
	if s := open(t, folderOf(t, files...)); s.Test.Len() != 2 {
		t.Errorf("%d test pictures, want those of val", s.Test.Len())
	}
	both := append(zoo(t), file{"test/dog/1.jpg", photo(t, 2)})
	for _, path := range []string{folderOf(t, both...), written(t, "x.tar", tarOf(t, both...))} {
		s := open(t, path)
		if s.Test.Len() != 2 || !strings.Contains(strings.Join(s.Notes, "\n"), "val is taken") {
			t.Errorf("%d test pictures, notes %q", s.Test.Len(), s.Notes)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files []file
		want  string
	}{
		"nothing": {nil, "no picture, want pictures *.jpg"},
		"no picture": {[]file{{"train/cat/x.tiff", nil}, {"train/cat/y.tiff", nil}},
			"2 files that are no *.jpg, *.jpeg, *.png, *.gif, *.webp or *.bmp were left out (.tiff)"},
		"flat":           {[]file{{"x.jpg", photo(t, 0)}}, "pictures without folders of classes, want CLASS/NAME.jpg"},
		"an empty class": {append(zoo(t), file{"train/yak/", nil}), "no picture in class yak of train"},
		"a class only in val": {append(zoo(t), file{"val/yak/1.jpg", photo(t, 0)}),
			"class yak in val only, want no class that train has not"},
		"many classes in val": {append(zoo(t), file{"val/a/1.jpg", nil}, file{"val/b/1.jpg", nil},
			file{"val/d/1.jpg", nil}, file{"val/e/1.jpg", nil}, file{"val/f/1.jpg", nil}, file{"val/g/1.jpg",
				nil}), "class a, b, d, e, f and 1 more in val only"},
		"classes spelt anew": {[]file{{"train/cat/1.jpg", photo(t, 0)}, {"val/Cat/1.jpg", photo(t, 0)}},
			"class Cat in val only"},
	} {
		paths := []string{folderOf(t, c.files...)}
		if len(c.files) > 0 {
			paths = append(paths, written(t, "x.tar", tarOf(t, c.files...)))
		}
		for _, path := range paths {
			_, err := Open(path, Options{})
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(),
				path) {
				t.Errorf("%s: error %v, want a FormatError with %q", name, err, c.want)
			}
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that the path does not exist", err)
	}
}

func TestOpenRefusesDamagedTars(t *testing.T) {
	whole := tarOf(t, zoo(t)...)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":     {nil, "an empty file"},
		"gzip":      {[]byte("\x1f\x8b\x08\x00"), "a file compressed with gzip"},
		"no tar":    {bytes.Repeat([]byte("no tar at all. "), 100), "content that is not a tar"},
		"cut off":   {whole[:len(whole)-1024-600], "cut off; fetch it again"},
		"in header": {whole[:512*7+100], "cut off; fetch it again"},
		"garbage": {append(bytes.Clone(whole[:512*3]), bytes.Repeat([]byte{7}, 1024)...),
			"damage at byte 2048, after 3 files"},
	} {
		_, err := Open(written(t, "x.tar", c.content), Options{})
		if _, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want a FormatError with %q", name, err, c.want)
		}
	}
}

// A bad image is an error that names it and its archive; the others can be read.
func TestBadPicturesAreNamed(t *testing.T) {
	files := []file{{"cat/a.jpg", photo(t, 2)}, {"cat/b.jpg", photo(t, 2)[:200]},
		{"cat/c.jpg", jpegOf(t, 60000, 60000)}, {"dog/d.png", photo(t, 3)}}
	for _, path := range []string{folderOf(t, files...), written(t, "x.tar", tarOf(t, files...))} {
		s := open(t, path)
		var p RGB
		for i, want := range []string{"", "picture cat/b.jpg: damaged", "picture cat/c.jpg: 60000×60000 pixels", ""} {
			err := s.Train.Image(&p, i)
			var bad *PictureError
			if want == "" && err != nil || want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(),
				want) || !strings.Contains(err.Error(), path)) {
				t.Errorf("picture %d: error %v, want %q", i, err, want)
			}
		}
	}
	gone := folderOf(t, files...)
	s := open(t, gone)
	if err := os.Remove(filepath.Join(gone, "cat", "a.jpg")); err != nil {
		t.Fatal(err)
	}
	if err := s.Train.Image(new(RGB), 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that the file is gone", err)
	}
}

// Concurrent reads of one source return the requested images.
func TestSourcesAreSafeForConcurrentUse(t *testing.T) {
	s := open(t, written(t, "x.tar", tarOf(t, zoo(t)...)))
	want := list(t, s.Train)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := list(t, s.Train); got != want {
					t.Errorf("read\n%s, want\n%s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// For any tar: no panic, an index in proportion to its size, and images within it.
func FuzzTar(f *testing.F) {
	f.Add(tarOf(f, zoo(f)...))
	f.Add(tarOf(f, file{"n01.tar", tarOf(f, file{"a.JPEG", photo(f, 2)})}))
	f.Add(tarOf(f, file{"1.jpg", photo(f, 2)}, file{"1.cls", []byte("3")}))
	f.Add(tarOf(f, file{"1.jpg", photo(f, 2)}, file{"1.json", []byte(`{"label": 3}`)}))
	f.Add(zipOf(f, zoo(f)...))
	f.Add(zipOf(f, file{"1.jpg", photo(f, 2)}, file{"1.cls", []byte("3")}))
	f.Add(tarOf(f, file{"a/1.jpg", photo(f, 2)}, file{"a/2.jpg", photo(f, 2)},
		file{"a/metadata.csv", []byte("file_name,label\n1.jpg,0\n2.jpg,1\n")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Open(written(t, "x.tar", b), Options{MaxPixels: 1 << 16})
		if err != nil {
			return
		}
		defer s.Close()
		for _, source := range []Source{s.Train, s.Test} {
			if source == nil {
				continue
			}
			if source.Len() > len(b)/46 { // the head of a member of a zip is the smallest
				t.Errorf("%d pictures in %d bytes", source.Len(), len(b))
			}
			for i := range source.Len() {
				if l := int(source.Label(i)); l < 0 || l >= len(s.Classes) {
					t.Errorf("label %d of %d classes", l, len(s.Classes))
				}
				_ = source.Image(new(RGB), i) // an error is accepted as well
			}
		}
	})
}
