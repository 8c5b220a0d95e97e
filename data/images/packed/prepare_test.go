package packed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fspda/data/images"
	"fspda/internal/testing/imagetest"
)

// photo returns an image of w×h with edges and colours.
func photo(w, h, n int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			v := uint8(0)
			if (x/5+y/7+n)%2 == 0 {
				v = 200
			}
			m.Set(x, y, color.RGBA{v, uint8(17*n + x), uint8(5 * y), 255})
		}
	}
	return m
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// folder makes class folders of n training images in three classes, and four test images. Sizes
// differ; with bad, every fifth training image cannot be decoded, for various reasons.
func folder(t testing.TB, n int, bad bool) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		content := imagetest.JPEG(t, photo(20+i%30, 25+i%17, i), 95)
		name := fmt.Sprintf("train/%s/%03d.jpg", []string{"ant", "bee", "cat"}[i%3], i)
		switch {
		case bad && i%10 == 4:
			content = content[:len(content)/2]
		case bad && i%10 == 9:
			content = []byte("no picture at all")
		case i%7 == 3:
			content = imagetest.PNG(t, photo(20+i%30, 25+i%17, i))
		}
		write(t, filepath.Join(dir, name), content)
	}
	for i := range 4 {
		write(t, filepath.Join(dir, fmt.Sprintf("val/%s/%d.png", []string{"ant", "bee", "cat"}[i%3], i)),
			imagetest.PNG(t, photo(40, 30, i)))
	}
	return dir
}

func source(t testing.TB, path string) *images.Set {
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

// small packs at 16 pixels into shards of about eight images.
func small(format string) Options {
	return Options{Settings: Settings{Size: 16, Format: format}, ShardBytes: map[string]int64{Raw: 7000,
		JPEG: 5000}[format]}
}

func prepare(t testing.TB, from *images.Set, o Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "packed")
	if _, err := Prepare(t.Context(), from, dir, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

// content returns all files of a folder except the lock.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

// same compares two folders.
func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s differs: %d bytes, want %d", what, name, len(got[name]), len(want[name]))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is left over", what, name)
		}
	}
}

// A raw set holds the scaled images of its source, with labels and names, and returns pixels
// without a copy.
func TestPrepareRaw(t *testing.T) {
	from := source(t, folder(t, 30, false))
	dir := prepare(t, from, small(Raw))
	s := source(t, dir)
	if s.Kind != Kind || s.Train.Len() != 30 || s.Test.Len() != 4 ||
		!slices.Equal(s.Classes, []string{"ant", "bee", "cat"}) || len(s.Notes) > 0 {
		t.Fatalf("%s of %d and %d pictures, classes %v, notes %v", s.Kind, s.Train.Len(), s.Test.Len(), s.Classes,
			s.Notes)
	}
	for i := range 30 {
		var p, before images.RGB
		if err := errors.Join(s.Train.Image(&p, i), from.Train.Image(&before, i)); err != nil {
			t.Fatal(err)
		}
		w, h := fit(before.W, before.H, 16)
		pix, pw, ph := s.Train.(images.Raw).Pixels(i)
		if p.W != w || p.H != h || pw != w || ph != h || !bytes.Equal(pix, p.Pix) || min(w, h) != 16 {
			t.Errorf("picture %d: %d×%d, want %d×%d", i, p.W, p.H, w, h)
		}
		if s.Train.Label(i) != from.Train.Label(i) ||
			s.Train.Name(i) != from.Train.Name(i) {
			t.Errorf("picture %d is %s of class %d", i, s.Train.Name(i), s.Train.Label(i))
		}
		if d := meanOf(p.Pix) - meanOf(before.Pix); d < -8 || d > 8 {
			t.Errorf("picture %d: the mean moved by %.1f", i, d)
		}
	}
	if names := content(t, dir); len(names) < 6 || names[classesName] != "ant\nbee\ncat\n" ||
		names[journalName] != "" || names[badName] != "" {
		t.Errorf("files %v", slices.Collect(func(yield func(string) bool) {
			for n := range names {
				yield(n)
			}
		}))
	}
	if err := Check(t.Context(), dir, nil); err != nil {
		t.Error(err)
	}
}

func meanOf(pix []uint8) float64 {
	sum := 0
	for _, v := range pix {
		sum += int(v)
	}
	return float64(sum) / float64(len(pix))
}

// A JPEG set holds files that decode to almost the pixels of a raw set; a small JPEG is copied
// unchanged.
func TestPrepareJPEG(t *testing.T) {
	dir := folder(t, 20, false)
	write(t, filepath.Join(dir, "train/ant/tiny.jpg"), imagetest.JPEG(t, photo(15, 12, 1), 95))
	from := source(t, dir)
	o := small(JPEG)
	o.Quality = 97
	s, raw := source(t, prepare(t, from, o)), source(t, prepare(t, from, small(Raw)))
	for i := range 21 {
		var p, want images.RGB
		if err := errors.Join(s.Train.Image(&p, i), raw.Train.Image(&want, i)); err != nil {
			t.Fatal(err)
		}
		if d := meanOf(p.Pix) - meanOf(want.Pix); p.W != want.W || p.H != want.H || d < -3 || d > 3 {
			t.Errorf("picture %d: %d×%d, want %d×%d; the mean is off by %.1f", i, p.W, p.H, want.W, want.H, d)
		}
		name := s.Train.Name(i)
		encoded, err := s.Train.(images.Encoded).Encoded(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		if original, _ := from.Train.(images.Encoded).Encoded(nil, i); bytes.Equal(encoded,
			original) != strings.HasSuffix(name, "tiny.jpg") {
			t.Errorf("%s: kept as it was: %v", name, bytes.Equal(encoded, original))
		}
	}
	if err := Check(t.Context(), s.Path, nil); err != nil {
		t.Error(err)
	}
}

// Lanczos is symmetric and has sum one: an image of one colour keeps it, and a mirrored image
// becomes the mirror image.
func TestScaled(t *testing.T) {
	c := converter{settings: Settings{Size: 8}}
	c.rgb.SetImage(photo(64, 48, 1))
	m := c.scaled()
	if m.Rect.Dx() != 10 || m.Rect.Dy() != 8 {
		t.Errorf("size %v, want 10×8", m.Rect)
	}
	for i := range c.rgb.Pix {
		c.rgb.Pix[i] = 77
	}
	for i, v := range c.scaled().Pix {
		if want := uint8(77); i%4 < 3 && v != want {
			t.Fatalf("value %d is %d, want %d", i, v, want)
		}
	}
	for _, x := range []struct{ w, h, size, wantW, wantH int }{{500, 375, 256, 341, 256}, {375, 500, 256, 256, 341},
		{256, 900, 256, 256, 900}, {100, 90, 256, 100, 90}, {257, 100000, 256, 256, 99610}} {
		if w, h := fit(x.w, x.h, x.size); w != x.wantW || h != x.wantH {
			t.Errorf("%v: %d×%d", x, w, h)
		}
	}
}

// The bytes do not depend on the number of workers.
func TestPrepareIsTheSameForAnyJobs(t *testing.T) {
	from := source(t, folder(t, 40, true))
	for _, format := range []string{Raw, JPEG} {
		o := small(format)
		o.Jobs = 1
		want := content(t, prepare(t, from, o))
		for _, jobs := range []int{2, 7} {
			o.Jobs = jobs
			same(t, fmt.Sprintf("%s, %d jobs", format, jobs), content(t, prepare(t, from, o)), want)
		}
	}
}

// A preparation that is stopped after any image, repeatedly, gives the same bytes as an
// uninterrupted one.
func TestPrepareGoesOn(t *testing.T) {
	from := source(t, folder(t, 40, true))
	want := content(t, prepare(t, from, small(Raw)))
	for stop := 1; stop < 44; stop += 7 {
		dir := filepath.Join(t.TempDir(), "packed")
		var again int
		for at := stop; ; at += stop {
			ctx, cancel := context.WithCancel(t.Context())
			o := small(Raw)
			seen := 0
			o.Progress = func(done, bad int) {
				if seen++; seen > stop+8 {
					cancel()
				}
			}
			_, err := Prepare(ctx, from, dir, o)
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if _, err := images.Open(dir, images.Options{}); err == nil || !strings.Contains(err.Error(),
				"call fspda data prepare again to continue") {
				t.Fatalf("opening what is not finished: %v", err)
			}
			if again++; again > 40 {
				t.Fatal("it does not get on")
			}
		}
		same(t, fmt.Sprintf("stopped %d times after %d", again, stop), content(t, dir), want)
	}
}

// Bad images are left out and listed, or end the preparation, as configured; an I/O error always
// ends it.
func TestPrepareBadPictures(t *testing.T) {
	path := folder(t, 40, true)
	from := source(t, path)
	var done, bad int
	o := small(Raw)
	o.Progress = func(d, b int) { done, bad = d, b }
	dir := prepare(t, from, o)
	m, err := ReadManifest(dir)
	if err != nil || m.Train.Pictures != 32 || m.Train.Bad != 8 || m.Test.Bad != 0 || done != 44 || bad != 8 ||
		!slices.Equal(m.Train.PerClass, []int{11, 10, 11}) {
		t.Errorf("%+v, %v; progress %d, %d", m, err, done, bad)
	}
	list := content(t, dir)[badName]
	if strings.Count(list, "\n") != 8 || !strings.Contains(list, `"name":"train/bee/004.jpg","reason":"damaged: `) ||
		!strings.Contains(list, "neither JPEG, PNG, GIF, WebP nor BMP but text/plain") {
		t.Errorf("list of bad pictures:\n%s", list)
	}
	if s := source(t, dir); s.Train.Len() != 32 || !strings.Contains(strings.Join(s.Notes, ""),
		"8 bad pictures were left out") {
		t.Errorf("%d pictures, notes %v", s.Train.Len(), s.Notes)
	}
	o.Fail = true
	var picture *images.PictureError
	if _, err := Prepare(t.Context(), from, filepath.Join(t.TempDir(), "x"), o); !errors.As(err, &picture) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want the picture", err)
	}
	if err := os.Remove(filepath.Join(path, "train", "ant", "000.jpg")); err != nil {
		t.Fatal(err)
	}
	o.Fail = false
	if _, err := Prepare(t.Context(), from, filepath.Join(t.TempDir(), "x"), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that a file is gone", err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	from := source(t, folder(t, 10, false))
	done := prepare(t, from, small(Raw))
	begun := filepath.Join(t.TempDir(), "begun")
	ctx, cancel := context.WithCancel(t.Context())
	o := small(Raw)
	o.Progress = func(done, _ int) {
		if done == 9 { // the first shard is finished
			cancel()
		}
	}
	if _, err := Prepare(ctx, from, begun, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	full := t.TempDir()
	write(t, filepath.Join(full, "thesis.tex"), []byte("x"))
	file := filepath.Join(full, "thesis.tex")
	for _, c := range []struct {
		from *images.Set
		dir  string
		o    Options
		want string
	}{
		{from, done, Options{Settings: Settings{Size: 17}}, "a set begun with size 16, want 17: choose another folder"},
		{from, begun, Options{Settings: Settings{Size: 17}},
			"a set begun with size 16, want 17: choose another folder"},
		{from, done, small(JPEG), "a set begun with format raw, want jpeg"},
		{source(t, folder(t, 11, false)), done, small(Raw), "a set begun with pictures with fingerprint"},
		{from, full, small(Raw), "other things in it, such as thesis.tex"},
		{from, file, small(Raw), "thesis.tex"},
		{from, full, Options{Settings: Settings{Format: "bmp"}}, `format "bmp", want raw or jpeg`},
		{from, full, Options{Settings: Settings{Size: -1}}, "size -1"},
		{from, full, Options{Settings: Settings{Format: JPEG, Quality: 101}}, "quality 101, want 1 to 100"},
		{from, full, Options{Settings: Settings{Quality: 90}}, "a quality for format raw"},
		{from, full, Options{Jobs: -1}, "-1 jobs"},
	} {
		if _, err := Prepare(t.Context(), c.from, c.dir, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if m, err := Prepare(t.Context(), from, done, small(Raw)); err != nil || m.Train.Pictures != 10 {
		t.Errorf("a set that is complete already: %v, %v", m, err)
	}
}

// A preparation that stops at a bad image goes on when the image was replaced, and keeps the shards
// before it. Without any finished shard, other settings start anew.
func TestPrepareCorrectedSource(t *testing.T) {
	path := folder(t, 40, false)
	want := content(t, prepare(t, source(t, path), small(Raw)))
	good, err := os.ReadFile(filepath.Join(path, "train/bee/034.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "train/bee/034.jpg"), []byte("not yet"))
	dir := filepath.Join(t.TempDir(), "packed")
	o := small(Raw)
	o.Fail = true
	if _, err := Prepare(t.Context(), source(t, path), dir, o); err == nil {
		t.Fatal("a bad picture went by")
	}
	shard := filepath.Join(dir, "train-00000.arrow")
	before, err := os.Stat(shard)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "train/bee/034.jpg"), good)
	size := 0
	o.Progress = func(done, _ int) {
		if size == 0 {
			size = done
		}
	}
	m, err := Prepare(t.Context(), source(t, path), dir, o)
	if err != nil || size < 8 {
		t.Fatalf("went on at picture %d: %v", size, err)
	}
	if after, err := os.Stat(shard); err != nil || !os.SameFile(before, after) {
		t.Errorf("the first shard was written again: %v", err)
	}
	got := content(t, dir)
	delete(got, manifestName) // it names another folder
	delete(want, manifestName)
	same(t, "a corrected source", got, want)
	if m.Train.Pictures != 40 {
		t.Errorf("%d pictures", m.Train.Pictures)
	}
}

// A dangling link is a bad picture, not a fault of the disk.
func TestPrepareDanglingLink(t *testing.T) {
	path := folder(t, 10, false)
	if err := os.Symlink("nowhere.jpg", filepath.Join(path, "train/ant/zzz.jpg")); err != nil {
		t.Skip(err)
	}
	dir := prepare(t, source(t, path), small(Raw))
	if list := content(t, dir)[badName]; !strings.Contains(list, "a link to nowhere.jpg, which does not exist") {
		t.Errorf("list of bad pictures: %s", list)
	}
}

// A second preparation in the same folder is an error.
func TestPrepareIsAlone(t *testing.T) {
	from := source(t, folder(t, 10, false))
	dir := filepath.Join(t.TempDir(), "packed")
	o := small(Raw)
	var second error
	o.Progress = func(done, _ int) {
		if done == 3 {
			_, second = Prepare(t.Context(), from, dir, small(Raw))
		}
	}
	if _, err := Prepare(t.Context(), from, dir, o); err != nil || second == nil || !strings.Contains(second.Error(),
		"another preparation is running") {
		t.Errorf("the first %v, the second %v", err, second)
	}
}

// A full disk is an error that says so; with free space, the preparation continues.
func TestPrepareOnAFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	from := source(t, folder(t, 30, false))
	want := content(t, prepare(t, from, small(Raw)))
	dir := filepath.Join(t.TempDir(), "packed")
	o := small(Raw)
	o.Progress = func(done, _ int) { // the second shard is on a full disk
		if done == 2 {
			if err := os.Symlink("/dev/full", filepath.Join(dir, "train-00001.arrow"+suffix)); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := Prepare(t.Context(), from, dir, o)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free disk space and call again") {
		t.Errorf("error %v, want one of a full disk", err)
	}
	if _, err := Prepare(t.Context(), from, dir, small(Raw)); err != nil {
		t.Fatal(err)
	}
	same(t, "after a full disk", content(t, dir), want)
}
