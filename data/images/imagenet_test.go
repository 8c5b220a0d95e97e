package images

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// original makes a small version of ImageNet's original files: a tar of tars, a flat tar, and other
// files.
func original(t testing.TB, more ...file) string {
	t.Helper()
	return folderOf(t, append([]file{
		{imageNetTrain, tarOf(t,
			file{"n02.tar", tarOf(t, file{"n02_7.JPEG", photo(t, 2)}, file{"n02_3.JPEG", photo(t, 4)})},
			file{"n01.tar", tarOf(t, file{"n01_1.JPEG", photo(t, 6)})})},
		{imageNetVal, tarOf(t, file{"val_0002.JPEG", photo(t, 8)}, file{"val_0001.JPEG", photo(t, 0)},
			file{"val_0003.JPEG", photo(t, 2)})},
	}, more...)...)
}

// All label lists are equivalent: images 1 and 3 are of n02, 2 is of n01.
func TestImageNetTars(t *testing.T) {
	for name, files := range map[string][]file{
		"Kaggle": {{"LOC_val_solution.csv",
			[]byte("ImageId,PredictionString\nval_0003,n02 1 2 3 4\nval_0001,n02 85 1 499 272 n02 1 1 1 " +
				"1\nval_0002,n01 1 2 3 4\n")}},
		"wnids":   {{"imagenet_2012_validation_synset_labels.txt", []byte("n02\nn01\nn02\n")}},
		"names":   {{"val.txt", []byte("val_0001.JPEG n02\r\nval_0002.JPEG n01\r\nval_0003.JPEG n02\r\n")}},
		"numbers": {{"val.txt", []byte("val_0001.JPEG 1\nval_0002.JPEG 0\nval_0003.JPEG 1\n")}},
		"the devkit": {{"data/ILSVRC2012_validation_ground_truth.txt", []byte("1\n2\n1\n")},
			{"synsets.txt", []byte("n02\nn01\n")}},
		"given by name": {{"elsewhere.lst", []byte("val_0001 n02\nval_0002 n01\nval_0003 n02\n")}},
	} {
		dir := original(t, files...)
		o := Options{}
		if name == "given by name" {
			o.Labels = filepath.Join(dir, "elsewhere.lst")
		}
		for _, path := range []string{dir, filepath.Join(dir, imageNetTrain)} {
			s, err := Open(path, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := list(t, s.Train) + list(t, s.Test)
			want := []string{"n01/n01_1.JPEG is 0, 12×10", "n02/n02_3.JPEG is 1, 12×10", "n02/n02_7.JPEG is 1",
				"val_0002.JPEG is 0", "val_0001.JPEG is 1", "val_0003.JPEG is 1"}
			for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
				if !strings.HasPrefix(line, want[i]) {
					t.Errorf("%s: line %d is %q, want %q", name, i, line, want[i])
				}
			}
			if s.Kind != "ImageNet tars" || len(s.Classes) != 2 {
				t.Errorf("%s: %s with classes %v", name, s.Kind, s.Classes)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestImageNetTarsRefuse(t *testing.T) {
	for _, c := range []struct {
		files []file
		want  string
	}{
		{nil, "ILSVRC2012_img_val.tar without a file of its labels"},
		{[]file{{"val.txt", []byte("val_0001.JPEG n02\n")}}, "no line for val_0002.JPEG"},
		{[]file{{"val.txt", []byte("val_0001.JPEG 2\n")}}, "class 2 in line 1, want 0 to 1"},
		{[]file{{"val.txt", []byte("n02\nn01\n")}}, "2 lines, want 3"},
		{[]file{{"ILSVRC2012_validation_ground_truth.txt", []byte("1\n2\n1\n")}},
			"numbers of the devkit, want synsets.txt"},
		{[]file{{"val.txt", []byte("val_0001 n02\nval_0002 n09\nval_0003 n02\n")}},
			"class n09 in ILSVRC2012_img_val.tar only"},
		{[]file{{imageNetTrain, tarOf(t, file{"n01.tar", []byte("no tar")})}}, "ILSVRC2012_img_train.tar: n01.tar: "},
		{[]file{{imageNetTrain, tarOf(t, file{"n01.tar", tarOf(t)})}, {"val.txt", []byte("n01\nn01\nn01\n")}},
			"no picture"},
	} {
		_, err := Open(original(t, c.files...), Options{})
		if _, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want a FormatError with %q", err, c.want)
		}
	}
	if _, err := Open(original(t), Options{Labels: "none.txt"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that the labels are not there", err)
	}
}

func TestImageNetTrainingTarAlone(t *testing.T) {
	dir := original(t)
	if err := os.Remove(filepath.Join(dir, imageNetVal)); err != nil {
		t.Fatal(err)
	}
	if s := open(t, dir); s.Train.Len() != 3 || s.Test != nil {
		t.Errorf("%d pictures, test %v", s.Train.Len(), s.Test)
	}
}
