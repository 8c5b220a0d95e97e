package data

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/internal/testing/realdata"
)

// writeMNIST writes a set of 12 training and 5 test images of 4×3 in the form of MNIST, with some
// files replaced, and returns the folder. A nil content removes the file.
func writeMNIST(t testing.TB, replace map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string][]byte{
		"train-images-idx3-ubyte":    idxFile(12, 4, 3),
		"train-labels.idx1-ubyte":    idxFile(12),
		"t10k-images-idx3-ubyte.gz":  zipped(t, idxFile(5, 4, 3)),
		"t10k-labels.idx1-ubyte.gz":  zipped(t, idxFile(5)),
		"something-else-in-the-room": []byte("x"),
	}
	maps.Copy(files, replace)
	for name, content := range files {
		if content != nil {
			writeFile(t, filepath.Join(dir, name), content)
		}
	}
	return dir
}

func TestLoadMNISTInAnySpelling(t *testing.T) {
	s, err := LoadMNIST(writeMNIST(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Shape, []int{4, 3}) || s.Train.Len() != 12 || s.Test.Len() != 5 || s.Classes != 10 ||
		!slices.Equal(s.Mean, []float32{0.1307}) || !slices.Equal(s.Std, []float32{0.3081}) {
		t.Errorf("shape %v, %d and %d examples, %d classes, mean %v, std %v", s.Shape, s.Train.Len(), s.Test.Len(),
			s.Classes, s.Mean, s.Std)
	}
	if s.Train.Labels[11] != 1 || s.Train.Pixels[13] != 3 || !slices.Equal(s.Test.Labels, []int32{0, 1, 2, 3, 4}) {
		t.Errorf("labels %v, pixels %v", s.Train.Labels, s.Train.Pixels[:20])
	}
}

func TestLoadMNISTRefuses(t *testing.T) {
	bad := idxFile(12)
	bad[8+4] = 10
	for _, c := range []struct {
		file    string
		content []byte
		want    string
	}{
		{"train-images-idx3-ubyte", idxFile(12),
			"train-images-idx3-ubyte: magic 0x801 at byte 0, want 0x803: this is a label file"},
		{"train-labels.idx1-ubyte", idxFile(12, 4, 3), "this is an image file; pass the labels"},
		{"train-labels.idx1-ubyte", idxFile(11), "11 labels, want 12, one for each image of train-images-idx3-ubyte"},
		{"train-labels.idx1-ubyte", bad, "label 10 of example 4, want 0 to 9"},
		{"t10k-images-idx3-ubyte.gz", idxFile(5, 3, 4), "images of 3×4, want 4×3"},
		{"t10k-images-idx3-ubyte.gz", []byte{0x1f, 0x8b, 1}, "a gzip file with a bad header"},
		{"t10k-labels.idx1-ubyte.gz", idxFile(5)[:9], "9 bytes, want 13"},
	} {
		_, err := LoadMNIST(writeMNIST(t, map[string][]byte{c.file: c.content}))
		if _, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want a FormatError with %q", c.file, err, c.want)
		}
	}
}

func TestLoadMNISTNamesWhatIsMissing(t *testing.T) {
	for _, file := range []string{"train-images-idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images-idx3-ubyte.gz",
		"t10k-labels.idx1-ubyte.gz"} {
		_, err := LoadMNIST(writeMNIST(t, map[string][]byte{file: nil}))
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(),
			"synthetic") {
			t.Errorf("error %v, want one that names %s and a way out", err, file)
		}
	}
	dir := t.TempDir()
	if _, err := LoadMNIST(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "fspda data mnist fetches it") {
		t.Errorf("error %v, want one about a missing folder and how to get the data", err)
	}
	writeFile(t, filepath.Join(dir, "file"), nil)
	if _, err := LoadMNIST(filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("error %v, want one that says this is a file", err)
	}
}

// The real files: class counts, and the normalization constants match the pixels.
func TestRealMNIST(t *testing.T) {
	if raceDetector {
		t.Skip("the small files above go the same way; unpacking takes long under the race detector")
	}
	s, err := LoadMNIST(realdata.Path(t, "mnist"))
	if err != nil {
		t.Fatal(err)
	}
	count := make([]int, 10)
	for _, y := range s.Train.Labels {
		count[y]++
	}
	if !slices.Equal(count, mnistCounts) || s.Test.Len() != 10000 || !slices.Equal(s.Shape, []int{28, 28}) {
		t.Errorf("class counts %v, %d test examples, shape %v; want %v, 10000, [28 28]", count, s.Test.Len(), s.Shape,
			mnistCounts)
	}
	mean, std := moments(s.Train.Pixels)
	if math.Abs(mean-mnistMean) > 5e-5 || math.Abs(std-mnistStd) > 5e-5 {
		t.Errorf("mean %.5f and std %.5f, want 0.1307 and 0.3081", mean, std)
	}
}

// moments returns the mean and the standard deviation of pixel/255.
func moments(pixels []uint8) (mean, std float64) {
	var sum, square int
	for _, p := range pixels {
		sum += int(p)
		square += int(p) * int(p)
	}
	n := 255 * float64(len(pixels))
	mean = float64(sum) / n
	return mean, math.Sqrt(float64(square)/n/255 - mean*mean)
}
