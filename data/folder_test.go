package data

import (
	"errors"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/device"
	"fspda/internal/testing/realdata"
)

// folderTree is class folders of small PNG images.
func folderTree(t testing.TB, splits ...string) string {
	t.Helper()
	files := map[string][]byte{}
	for _, split := range splits {
		for c, class := range []string{"ant", "bee", "cat"} {
			for _, name := range []string{"1.png", "2.png"} {
				files[split+"/"+class+"/"+name] = imageOf(t, 30+c, 20, color.NRGBA{uint8(80 * c), 10, 20, 255})
			}
		}
	}
	return writeTree(t, files)
}

func TestOpenFolder(t *testing.T) {
	for _, name := range []string{"folder", "imagenet"} {
		s, err := Open(name, OpenOptions{Dir: folderTree(t, "train", "val"), Crop: 16, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != name || s.Classes != 3 || s.Train.Len() != 6 || s.Test.Len() != 6 || s.Train.augment != ImageNet ||
			len(s.Notes) > 0 || !slices.Equal(s.Mean, imagenetMean) {
			t.Errorf("%+v", s)
		}
		var b device.Batch
		if err := s.Test.Batch(&b, 0, 6); err != nil || !slices.Equal(b.Y, []int32{0, 0, 1, 1, 2, 2}) {
			t.Errorf("labels %v, %v", b.Y, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Images that are far smaller than the crop are noted, with the crop that takes them as they are.
func TestOpenFolderEnlarges(t *testing.T) {
	for crop, want := range map[int]string{0: "20 pixels (the median of 6), and they are enlarged to 224; crop: " +
		"20 takes " +
		"them as they are, in about 1/125 of the time", 41: "enlarged to 41", 40: ""} {
		s, err := Open("folder", OpenOptions{Dir: folderTree(t, "train", "val"), Crop: crop})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(s.Notes, "\n"); want == "" && notes != "" || !strings.Contains(notes, want) {
			t.Errorf("crop %d: notes %q, want %q", crop, notes, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Without test images the training images are used, with a note.
func TestOpenFolderWithoutTests(t *testing.T) {
	s, err := Open("folder", OpenOptions{Dir: folderTree(t, "train"), Crop: 16})
	if err != nil {
		t.Fatal(err)
	}
	if s.Test.Len() != 6 || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "has no test images") {
		t.Errorf("%d images to test on, notes %q", s.Test.Len(), s.Notes)
	}
}

func TestOpenFolderRefuses(t *testing.T) {
	empty := t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "train"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, want string }{
		{"", "no path given: name a folder with train/CLASS/*.jpg"},
		{filepath.Join(empty, "none"), "or train on the built-in set synthetic-images"},
		{empty, "data: set folder: data: "},
	} {
		if _, err := Open("folder", OpenOptions{Dir: c.dir}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if _, err := Open("folder", OpenOptions{Dir: filepath.Join(empty, "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that is ErrNotExist", err)
	}
}

// Real photographs from a tar: both decoders agree except for rounding.
func TestRealImages(t *testing.T) {
	path := realdata.Path(t, "imagenet-sample-200.tar")
	const n = 6
	var batches []device.Batch
	for _, jpeg := range []Decoder{GoJPEG, LibJPEG} {
		s, err := Open("imagenet", OpenOptions{Dir: path, JPEG: jpeg})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() // read only
		if s.Train.Len() != 200 || s.Classes != 200 || !slices.Equal(s.Shape, []int{224, 224, 3}) {
			t.Fatalf("%d images of %d classes, shape %v", s.Train.Len(), s.Classes, s.Shape)
		}
		var b device.Batch
		if err := s.Train.gatherAugmented(&b, sequence(n), nil, augmentKey{1, 0, 0}, nil, nil); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	sum := 0.0
	for i, v := range batches[0].X {
		sum += float64(max(v-batches[len(batches)-1].X[i], batches[len(batches)-1].X[i]-v))
	}
	// A level is 1/(255·0.225) = 0.017.
	if mean := sum / float64(len(batches[0].X)); mean > 0.005 {
		t.Errorf("mean difference between decoders %v", mean)
	}
}
