//go:build !windows

package cli

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cli/command"
)

// imageTree makes class folders with the given files, one for each class.
func imageTree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bomb returns the beginning of a PNG file whose header claims 60,000×60,000 pixels.
func bomb() []byte {
	head := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 60000), 60000)...)
	head = append(head, 8, 2, 0, 0, 0)
	file := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(head))
}

// An image whose header claims more pixels than memory holds is a bad image: it is named before it
// is decoded, or skipped.
func TestPictureBomb(t *testing.T) {
	good := golden(t)
	dir := imageTree(t, map[string][]byte{"train/a/1.png": good, "train/a/2.png": bomb(), "train/b/3.png": good,
		"val/a/4.png": good, "val/b/5.png": good})
	args := []string{"train", "--data", "folder", "--data-dir", dir, "--crop", "8", "--hidden", "4", "--agents", "1",
		"--partition", "shuffled", "--batch", "3", "--iterations", "2", "--eval-points", "1"}
	status, _, stderr := call(t, append(args, "--out", filepath.Join(t.TempDir(), "fails"))...)
	if status == 0 || !strings.Contains(stderr, "2.png") ||
		!strings.Contains(stderr, "60000×60000 pixels by its header") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	status, _, stderr = call(t, append(args, "--on-bad", "skip", "--out", filepath.Join(t.TempDir(), "skips"))...)
	if status != 0 || !strings.Contains(stderr, "60000×60000") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	status, stdout, stderr := call(t, "data", "prepare", dir, "--out", filepath.Join(t.TempDir(), "packed"))
	if status != 0 || !strings.Contains(stdout, "were left out") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
}

// A bad image ends a run with an error that names it, or on request is skipped with a warning.
func TestBadPictures(t *testing.T) {
	good := golden(t)
	dir := imageTree(t, map[string][]byte{"train/a/1.png": good, "train/a/2.png": good,
		"train/b/3.png": good[:len(good)/2], "train/b/4.png": good,
		"val/a/5.png": good, "val/b/6.png": good})
	args := []string{"train", "--data", "folder", "--data-dir", dir, "--crop", "8", "--hidden", "4", "--agents", "2",
		"--partition", "shuffled", "--batch", "2", "--iterations", "3", "--eval-points", "1"}
	status, _, stderr := call(t, append(args, "--out", filepath.Join(t.TempDir(), "fails"))...)
	if status == 0 || !strings.Contains(stderr, "train/b/3.png") &&
		!strings.Contains(stderr, filepath.Join("train", "b", "3.png")) {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	status, _, stderr = call(t, append(args, "--on-bad", "skip", "--out", filepath.Join(t.TempDir(), "skips"))...)
	if status != 0 || strings.Count(stderr, "skipped an image") != 1 {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}

// golden returns a real PNG file.
func golden(t *testing.T) []byte {
	t.Helper()
	file, err := os.ReadFile("../data/testdata/resample/6.png")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBadPictureSets(t *testing.T) {
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no path":     {[]string{"--data", "imagenet"}, "no path given"},
		"no pictures": {[]string{"--data", "folder", "--data-dir", empty}, "no picture"},
		"size below": {[]string{"--data", "synthetic-images", "--crop", "64", "--image-size", "32"},
			"image size of 32 pixels"},
		"augmentation":   {[]string{"--augment", "imagnet"}, "did you mean imagenet?"},
		"of digits":      {[]string{"--augment", "imagenet"}, "want square RGB images"},
		"decoder":        {[]string{"--jpeg", "trubo"}, "did you mean turbo?"},
		"bad by mistake": {[]string{"--on-bad", "ignore"}, "expected fail, skip"},
	} {
		out := filepath.Join(t.TempDir(), "run")
		status, _, stderr := call(t, append([]string{"train", "--out", out}, c.args...)...)
		if status != command.ExitBadInput || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d: %s", name, status, stderr)
		}
	}
}

func TestBenchLoad(t *testing.T) {
	status, stdout, stderr := call(t, "bench", "load", "--data-train", "20", "--crop", "32", "--time", "50ms", "--json")
	var r struct {
		Rows []struct {
			From    string
			PerCore float64 `json:"per_core"`
		}
		Packed float64 `json:"packed_rate"`
	}
	if err := json.Unmarshal([]byte(stdout), &r); status != 0 || err != nil || len(r.Rows) != 3 ||
		r.Rows[1].From != "JPEG, go" || r.Rows[2].PerCore <= 0 || r.Packed <= 0 {
		t.Errorf("exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	for _, bad := range [][]string{{"--jobs", "0"}, {"--time", "0s"}, {"--batch", "0"}, {"--data", "mnist"}} {
		if status, _, stderr := call(t, append([]string{"bench", "load"}, bad...)...); status != command.ExitBadInput {
			t.Errorf("%v: exit status %d: %s", bad, status, stderr)
		}
	}
}

// A small residual network learns the drawn images, read from files, with crops.
func TestLearnSyntheticImages(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes a minute or two; FSPDA_LONG=1 runs it")
	}
	s := summary(t, "train", "--data", "synthetic-images", "--data-train", "2000", "--data-test", "300", "--crop",
		"32", "--model", "resnet20", "--agents", "2", "--partition", "shuffled", "--batch", "32", "--iterations",
		"450", "--alpha", "0.1", "--eval-points", "3")
	if s.TestAccAvg < 0.65 {
		t.Errorf("accuracy %.3f, want 0.65; a tenth is chance", float64(s.TestAccAvg))
	}
}
