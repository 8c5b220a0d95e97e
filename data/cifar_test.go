package data

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/internal/testing/imagetest"
	"fspda/internal/testing/realdata"
)

// imageOf returns a PNG of one colour except for its first pixel, which is white.
func imageOf(t testing.TB, w, h int, c color.NRGBA) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.SetNRGBA(i%w, i/w, c)
	}
	m.SetNRGBA(0, 0, color.NRGBA{255, 255, 255, 255})
	return imagetest.PNG(t, m)
}

// cifarTree has five training images and one test image of each class: class c has red c, image i
// green i, test images blue 9.
func cifarTree(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"readme.txt": []byte("x")}
	for c, class := range cifarClasses {
		for i := range 5 {
			files[fmt.Sprintf("train/%s/%04d.png", class, i)] = imageOf(t, 32, 32, color.NRGBA{uint8(c), uint8(i), 0,
				255})
		}
		files["test/"+class+"/0000.png"] = imageOf(t, 32, 32, color.NRGBA{uint8(c), 0, 9, 255})
	}
	return files
}

// cifarBinary is the same set in the binary version, with one batch per image number.
func cifarBinary() map[string][]byte {
	files := map[string][]byte{}
	record := func(c, green, blue int) []byte {
		r := []byte{byte(c)}
		for _, v := range []int{c, green, blue} {
			r = append(r, 255)
			r = append(r, bytes.Repeat([]byte{byte(v)}, 1023)...)
		}
		return r
	}
	for c := range cifarClasses {
		files["cifar-10-batches-bin/test_batch.bin"] = append(files["cifar-10-batches-bin/test_batch.bin"],
			record(c, 0, 9)...)
		for i := range 5 {
			name := fmt.Sprintf("cifar-10-batches-bin/data_batch_%d.bin", i+1)
			files[name] = append(files[name], record(c, i, 0)...)
		}
	}
	return files
}

func writeTree(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, content)
	}
	return dir
}

// tarOf returns an archive with its entries in reverse order.
func tarOf(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Reverse(names)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: "./" + name, Mode: 0o644,
			Size: int64(len(files[name]))})); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A folder, an archive and the binary version hold the same examples.
func TestLoadCIFAR10(t *testing.T) {
	archive := tarOf(t, cifarTree(t))
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "c.tar"), archive)
	writeFile(t, filepath.Join(dir, "c.tgz"), zipped(t, archive))
	writeFile(t, filepath.Join(dir, "bin.tar"), tarOf(t, cifarBinary()))
	var prints []string
	for _, from := range []string{writeTree(t, cifarTree(t)), filepath.Join(dir, "c.tar"), filepath.Join(dir, "c.tgz"),
		writeTree(t, cifarBinary()), filepath.Join(dir, "bin.tar")} {
		s, err := LoadCIFAR10(from, "")
		if err != nil {
			t.Fatal(err)
		}
		if s.Train.Len() != 50 || s.Test.Len() != 10 || !slices.Equal(s.Shape, []int{32, 32, 3}) ||
			s.Train.augment != CIFAR || s.Test.augment != None {
			t.Fatalf("%s: %d and %d examples of shape %v, varied %q and %q", from, s.Train.Len(), s.Test.Len(), s.Shape,
				s.Train.augment, s.Test.augment)
		}
		for e, y := range s.Train.Labels {
			p := s.Train.pixels(int32(e))
			if !slices.Equal(p[:3], []uint8{255, 255, 255}) || p[3] != uint8(y) || p[4] > 4 || p[5] != 0 ||
				p[len(p)-3] != uint8(y) {
				t.Fatalf("%s: example %d of class %d begins %v", from, e, y, p[:6])
			}
		}
		prints = append(prints, s.Fingerprint())
	}
	// The binary version has its own order of the training examples: by batch, not by class.
	if prints[0] != prints[1] || prints[1] != prints[2] || prints[3] != prints[4] || prints[0] == prints[3] {
		t.Errorf("fingerprints %v, want two sets of equal ones", prints)
	}
}

func TestLoadCIFAR10Refuses(t *testing.T) {
	swap := func(files map[string][]byte, name string, content []byte) string {
		if content == nil {
			delete(files, name)
		} else {
			files[name] = content
		}
		return writeTree(t, files)
	}
	binary := cifarBinary()["cifar-10-batches-bin/test_batch.bin"]
	other := slices.Clone(binary)
	other[cifar10.record()] = 10
	whole := imageOf(t, 32, 32, color.NRGBA{})
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "cut.tar"), tarOf(t, cifarTree(t))[:2100])
	writeFile(t, filepath.Join(dir, "text.tar"), bytes.Repeat([]byte("text"), 1000))
	for _, c := range []struct{ from, want string }{
		{swap(cifarTree(t), "train/bird/0001.png", []byte("<html>")),
			"0001.png: neither JPEG, PNG, GIF, WebP nor BMP but text/html; charset=utf-8, want a JPEG or PNG image"},
		{swap(cifarTree(t), "train/bird/0001.png", whole[:len(whole)-20]), "want a JPEG or PNG image"},
		{swap(cifarTree(t), "test/cat/0000.png", imageOf(t, 32, 31, color.NRGBA{})), "an image of 32×31, want 32×32"},
		{swap(cifarTree(t), "test/cat/0000.png", nil), "no test image of class cat"},
		{swap(cifarBinary(), "cifar-10-batches-bin/test_batch.bin", binary[:len(binary)-1]),
			"30729 bytes, want a multiple of 3073"},
		{swap(cifarBinary(), "cifar-10-batches-bin/test_batch.bin", other), "label 10 of record 1, want 0 to 9"},
		{swap(cifarBinary(), "cifar-10-batches-bin/test_batch.bin", nil), "has no test images"},
		{swap(cifarBinary(), "cifar-10-batches-bin/data_batch_5.bin", nil), "has no data_batch_5.bin"},
		{filepath.Join(dir, "cut.tar"), "cut.tar: damage after"},
		{filepath.Join(dir, "text.tar"), "text.tar: damage after 0 files, want an intact tar archive"},
		{filepath.Join(dir, "none"), "CIFAR-10 is read in its binary version"},
		{dir, "has no train images"},
	} {
		if _, err := LoadCIFAR10(c.from, None); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if _, err := LoadCIFAR10(dir, "rotate"); err == nil || !strings.Contains(err.Error(),
		`augmentation "rotate" is not known, want auto, none, `) {
		t.Errorf("error %v", err)
	}
}

// The real data: class counts, and the normalization constants match the pixels.
func TestRealCIFAR10(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("the small sets above go the same way; decoding 60000 images takes long under the race detector")
	}
	s, err := LoadCIFAR10(realdata.Path(t, "cifar10-imagefolder.tar"), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, half := range map[string]struct {
		Split
		each int
	}{"train": {s.Train, 5000}, "test": {s.Test, 1000}} {
		count := make([]int, 10)
		for _, y := range half.Labels {
			count[y]++
		}
		if slices.Min(count) != half.each || slices.Max(count) != half.each {
			t.Errorf("%s: class counts %v, want %d each", name, count, half.each)
		}
	}
	for c := range 3 {
		var channel []uint8
		for i := c; i < len(s.Train.Pixels); i += 3 {
			channel = append(channel, s.Train.Pixels[i])
		}
		mean, std := moments(channel)
		// The files are JPEG copies, so their moments differ slightly from the original's.
		if math.Abs(mean-float64(cifarMean[c])) > 1e-3 || math.Abs(std-float64(cifarStd[c])) > 3e-3 {
			t.Errorf("channel %d: mean %.5f and std %.5f, want %v and %v", c, mean, std, cifarMean[c], cifarStd[c])
		}
	}
}
