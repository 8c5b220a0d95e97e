package data

import (
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writerTree has the writers f0000 to f0004, of whom writer w wrote w+1 images of each of the
// classes 0, 1 and a, and one test image of class a. Images are 4×3, grey or not.
func writerTree(t testing.TB, grey bool) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"readme.txt": []byte("x")}
	for w := range 5 {
		c := color.NRGBA{uint8(10 * w), uint8(10 * w), uint8(10 * w), 255}
		if !grey {
			c.G = 200
		}
		for _, class := range []string{"0", "1", "a"} {
			for i := range w + 1 {
				files[fmt.Sprintf("femnist/train/f%04d/%s/%d.png", w, class, i)] = imageOf(t, 4, 3, c)
			}
		}
		files[fmt.Sprintf("femnist/test/f%04d/a/0.png", w)] = imageOf(t, 4, 3, c)
	}
	return files
}

func TestLoadWriters(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "femnist.tar.gz")
	writeFile(t, archive, zipped(t, tarOf(t, writerTree(t, true))))
	var prints []string
	for _, from := range []string{writeTree(t, writerTree(t, true)), archive} {
		s, err := LoadWriters(from)
		if err != nil {
			t.Fatal(err)
		}
		if s.Classes != 3 || s.Train.Len() != 45 || s.Test.Len() != 5 || !slices.Equal(s.Shape, []int{3, 4}) ||
			!slices.Equal(s.ClassNames, []string{"0", "1", "a"}) || len(s.Notes) != 0 {
			t.Errorf("%d classes %v, %d and %d examples of %v, notes %v", s.Classes, s.ClassNames, s.Train.Len(),
				s.Test.Len(), s.Shape, s.Notes)
		}
		// each image is a white pixel and 11 of 10w: the mean over 3(w+1) images of writer w
		sum, n := 0.0, 0.0
		for w := range 5 {
			sum += 3 * float64(w+1) * (255 + 11*10*float64(w))
			n += 3 * float64(w+1) * 12
		}
		if want := sum / n / 255; float64(s.Mean[0]) < want-1e-4 || float64(s.Mean[0]) > want+1e-4 {
			t.Errorf("mean %v, want %v", s.Mean[0], want)
		}
		if s.Train.Labels[3] != 0 || s.Train.Labels[5] != 1 || s.Train.Pixels[3*12+1] != 10 {
			t.Errorf("labels %v", s.Train.Labels[:9])
		}
		prints = append(prints, s.Fingerprint())
	}
	if prints[0] != prints[1] {
		t.Error("the folder and the archive differ")
	}
	s, err := LoadWriters(writeTree(t, writerTree(t, false)))
	if err != nil || !slices.Equal(s.Shape, []int{3, 4, 3}) || len(s.Mean) != 3 {
		t.Errorf("coloured images: %v", err)
	}
}

// Agents have whole writers.
func TestByWriter(t *testing.T) {
	s, err := LoadWriters(writeTree(t, writerTree(t, true)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePartition("by-writer")
	if err != nil {
		t.Fatal(err)
	}
	for agents, want := range map[int][]int{1: {45}, 2: {9, 36}, 5: {3, 6, 9, 12, 15}} {
		d, err := s.Divide(p, agents, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := sizes(d.Shards); !slices.Equal(got, want) || unused(t, d.Shards, 45) != 0 {
			t.Errorf("%d agents have %v examples, want %v", agents, got, want)
		}
		for i, shard := range d.Shards {
			for _, e := range shard {
				if w := int(s.Train.Pixels[12*int(e)+1]) / 10; w < i*5/agents || w >= (i+1)*5/agents {
					t.Errorf("agent %d of %d has an image of writer %d", i, agents, w)
				}
			}
		}
	}
	if _, err := s.Divide(p, 6, 1); err == nil || !strings.Contains(err.Error(), "6 agents for 5 writers") {
		t.Errorf("error %v", err)
	}
	other := mustSynthetic(t, SyntheticOptions{Train: 30, Test: 20})
	if _, err := other.Divide(p, 2, 1); err == nil || !strings.Contains(err.Error(), "choose data writers") {
		t.Errorf("a set without writers: %v", err)
	}
	if _, err := s.Divide(Shuffled{}, 2, 1); err != nil {
		t.Errorf("another partition: %v", err)
	}
}

func TestLoadWritersRefuses(t *testing.T) {
	edit := func(name string, content []byte) string {
		files := writerTree(t, true)
		files[name] = content
		return writeTree(t, files)
	}
	for want, from := range map[string]string{
		"an image of 5×3, want 4×3": edit("femnist/train/f0003/1/9.png", imageOf(t, 5, 3, color.NRGBA{})),
		"a test image of class z":   edit("femnist/test/f0003/z/0.png", imageOf(t, 4, 3, color.NRGBA{})),
		"want a JPEG or PNG image":  edit("femnist/train/f0003/1/9.png", []byte("no image")),
		"an image of 600×600, want at most 26214": writeTree(t, map[string][]byte{
			"train/a/0/0.png": imageOf(t, 600, 600, color.NRGBA{})}),
	} {
		var format *FormatError
		if _, err := LoadWriters(from); !errors.As(err, &format) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := LoadWriters(t.TempDir()); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "train/WRITER/CLASS/NAME") {
		t.Errorf("an empty folder: %v", err)
	}
	files := writerTree(t, true)
	for name := range files {
		if strings.Contains(name, "/test/") {
			delete(files, name)
		}
	}
	if s, err := LoadWriters(writeTree(t, files)); err != nil || len(s.Notes) != 1 || s.Test.Len() != 45 {
		t.Errorf("without test images: %v", err)
	}
}
