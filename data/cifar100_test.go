package data

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cifar100Binary has two training images and one test image of each class: class c has red c, image
// i green i, test images blue 9.
func cifar100Binary() map[string][]byte {
	files := map[string][]byte{"cifar-100-binary/fine_label_names.txt": []byte("apple\n")}
	add := func(name string, c, green, blue int) {
		record := []byte{byte(c % 20), byte(c)}
		for _, v := range []int{c, green, blue} {
			record = append(append(record, 255), bytes.Repeat([]byte{byte(v)}, 1023)...)
		}
		files[name] = append(files[name], record...)
	}
	for c := range cifar100Classes {
		for i := range 2 {
			add("cifar-100-binary/train.bin", c, i, 0)
		}
		add("cifar-100-binary/test.bin", c, 0, 9)
	}
	return files
}

// The same set as image files.
func cifar100Tree(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	for c, class := range cifar100Classes {
		for i := range 2 {
			files[fmt.Sprintf("train/%s/%04d.png", class, i)] = imageOf(t, 32, 32, color.NRGBA{uint8(c), uint8(i), 0,
				255})
		}
		files["test/"+class+"/0000.png"] = imageOf(t, 32, 32, color.NRGBA{uint8(c), 0, 9, 255})
	}
	return files
}

// A folder, an archive and the binary version hold the same examples.
func TestLoadCIFAR100(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "cifar-100-binary.tar.gz")
	writeFile(t, archive, zipped(t, tarOf(t, cifar100Binary())))
	var prints []string
	for _, from := range []string{writeTree(t, cifar100Binary()), archive, writeTree(t, cifar100Tree(t))} {
		s, err := LoadCIFAR100(from, "")
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != "cifar100" || s.Classes != 100 || s.Train.Len() != 200 || s.Test.Len() != 100 ||
			!slices.Equal(s.Shape, []int{32, 32, 3}) || s.ClassNames[99] != "worm" {
			t.Errorf("%s: %s of %d classes, %d and %d examples of %v", from, s.Name, s.Classes, s.Train.Len(),
				s.Test.Len(), s.Shape)
		}
		last := s.Train.Pixels[199*3072:]
		if s.Train.Labels[199] != 99 || !slices.Equal(last[:6], []uint8{255, 255, 255, 99, 1, 0}) {
			t.Errorf("%s: the last example has label %d and pixels %v", from, s.Train.Labels[199], last[:6])
		}
		prints = append(prints, s.Fingerprint())
	}
	if prints[0] != prints[1] || prints[0] != prints[2] {
		t.Errorf("fingerprints %v differ", prints)
	}
}

func TestLoadCIFAR100Refuses(t *testing.T) {
	files := cifar100Binary()
	edit := func(name string, change func([]byte) []byte) string {
		other := map[string][]byte{}
		for n, content := range files {
			other[n] = bytes.Clone(content)
		}
		other["cifar-100-binary/"+name] = change(other["cifar-100-binary/"+name])
		return writeTree(t, other)
	}
	for want, from := range map[string]string{
		"want a multiple of 3074": edit("train.bin", func(b []byte) []byte { return b[1:] }),
		"label 100 of record 0, want 0 to 99": edit("test.bin", func(b []byte) []byte {
			b[1] = 100
			return b
		}),
		"label 20 of record 1, want 0 to 19": edit("train.bin", func(b []byte) []byte {
			b[3074] = 20
			return b
		}),
	} {
		_, err := LoadCIFAR100(from, "")
		if _, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := LoadCIFAR100(t.TempDir(), ""); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "fspda data cifar100 fetches it") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := LoadCIFAR10(writeTree(t, cifar100Binary()), ""); err == nil {
		t.Error("CIFAR-100 was read as CIFAR-10")
	}
}

// Fashion-MNIST has the form of MNIST, and other means and names.
func TestLoadFashionMNIST(t *testing.T) {
	s, err := Open("fashion-mnist", OpenOptions{Dir: writeMNIST(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "fashion-mnist" || s.Train.Len() != 12 || s.Mean[0] != 0.2860 || s.Std[0] != 0.3530 ||
		s.ClassNames[9] != "ankle boot" {
		t.Errorf("%s of %d examples, mean %v, std %v, classes %v", s.Name, s.Train.Len(), s.Mean, s.Std, s.ClassNames)
	}
	_, err = Open("fashion-mnist", OpenOptions{Dir: t.TempDir()})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "fspda data fashion-mnist fetches it") {
		t.Errorf("an empty folder: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "Fashion-MNIST")
	if err := os.CopyFS(dir, os.DirFS(writeMNIST(t, nil))); err != nil {
		t.Fatal(err)
	}
	if name := Recognize(dir); name != "fashion-mnist" {
		t.Errorf("recognized as %q", name)
	}
}
