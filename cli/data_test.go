//go:build !windows

package cli

import (
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/internal/testing/imagetest"
	"fspda/internal/testing/realdata"
)

// makeImages makes class folders of small images, one of which is truncated.
func makeImages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 12 {
		m := image.NewRGBA(image.Rect(0, 0, 60, 40))
		for k := range 2400 {
			m.Set(k%60, k/60, color.RGBA{uint8(20 * i), uint8(k), 7, 255})
		}
		name := filepath.Join(dir, []string{"train", "train", "val"}[i%3], []string{"cat", "dog"}[i/3%2],
			fmt.Sprintf("%d.jpg", i))
		content := imagetest.JPEG(t, m, 75)
		if i == 4 {
			content = content[:300]
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// want runs the program and checks its exit status and that its output has all words.
func want(t *testing.T, status int, args []string, words ...string) {
	t.Helper()
	got, stdout, stderr := call(t, args...)
	if got != status {
		t.Errorf("%v: exit status %d, want %d\n%s%s", args, got, status, stdout, stderr)
	}
	for _, w := range words {
		if !strings.Contains(stdout+stderr, w) {
			t.Errorf("%v: nothing of %q in\n%s%s", args, w, stdout, stderr)
		}
	}
}

// Folders are inspected, prepared, verified and inspected again; then damage is found.
func TestDataPrepareAndCheck(t *testing.T) {
	dir, out := makeImages(t), filepath.Join(t.TempDir(), "packed")
	want(t, 0, []string{"data", "info", dir, "--decode"}, "class folders", "classes   2: cat, dog",
		"training  8 pictures, 4 to 4 of a class", "60×40 to 60×40",
		"bad       images: "+dir+": picture train/dog/4.jpg: damaged")
	want(t, 0, []string{"data", "prepare", dir, "--out", out, "--size", "20"},
		"7 training and 4 test pictures in 2 classes", "were left out", "--data folder --data-dir "+out)
	want(t, 0, []string{"data", "check", out}, "is intact")
	want(t, 0, []string{"data", "info", out, "--json"}, `"kind": "packed set"`, `"pictures": 7`,
		"were left out")
	want(t, 0, []string{"data", "prepare", dir, "--out", out, "--size", "20"}, "7 training and 4 test pictures")
	want(t, 2, []string{"data", "prepare", dir, "--out", out, "--size", "24"}, "a set begun with size 20, want 24")
	want(t, 2, []string{"data", "prepare", dir, "--out", out + "2", "--on-bad", "fail"},
		"picture train/dog/4.jpg: damaged")
	shard := filepath.Join(out, "train-00000.arrow")
	b, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(shard, b, 0o644); err != nil {
		t.Fatal(err)
	}
	want(t, 2, []string{"data", "check", out}, shard, "SHA-256")
}

// Tables of any column names are inspected and prepared, also those that save_to_disk wrote; other
// sets have no columns to name.
func TestDataTables(t *testing.T) {
	const dir = "../data/images/parquet/testdata/"
	columns := []string{"--image-column", "photo", "--label-column", "kind"}
	want(t, 0, append([]string{"data", "info", dir + "cases/other-names.parquet"}, columns...), "parquet",
		"classes   3: 0, 1, 2", "training  3 pictures")
	want(t, 0, append([]string{"data", "prepare", dir + "cases/other-names.parquet", "--out", t.TempDir()}, columns...),
		"3 training and 0 test pictures in 3 classes")
	want(t, 0, []string{"data", "info", dir + "saved"}, "Arrow tables of save_to_disk", "classes   3: ant, bee, cat",
		"training  5 pictures", "test      2 pictures")
	want(t, 0, []string{"data", "info", dir + "cases/unlabelled.parquet"},
		"2 rows for training have no label (-1 or null) and were left out")
	want(t, 2, []string{"data", "info", dir + "cases/other-names.parquet", "--image-column", "foto"},
		"photo.bytes (strings or bytes)", "want foto (strings or bytes)")
	want(t, 2, append([]string{"data", "info", makeImages(t)}, columns...), "leave out --image-column")
	want(t, 2, append([]string{"train", "--data", "mnist"}, columns...),
		"image_column and label_column belong to folder and imagenet")
}

// A text is described before and after it is prepared, with the same digests. It has nothing to
// check.
func TestDataInfoOfText(t *testing.T) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "a.txt"), filepath.Join(dir, "tokens")
	if err := os.WriteFile(path, []byte(strings.Repeat("abc\n", 25)), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, 0, []string{"data", "prepare", "text", path, "--out", out}, "90 training")
	val, err := os.ReadFile(filepath.Join(out, "val.bin"))
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("10 tokens, 10 B of text, SHA-256 %x", sha256.Sum256(val))
	want(t, 0, []string{"data", "info", path}, ": text", "tokenizer  char, vocabulary 4", digest)
	want(t, 0, []string{"data", "info", out}, ": files of tokens", "tokenizer  char, vocabulary 4", digest)
	want(t, 0, []string{"data", "info", out, "--json"}, `"tokens": 90`, `"vocabulary": 4`)
	want(t, 2, []string{"data", "info", out, "--decode"}, "is a text", "leave them out")
	want(t, 2, []string{"data", "check", out}, "is a text", "fspda data info")
	if err := os.Remove(filepath.Join(out, "val.bin")); err != nil {
		t.Fatal(err)
	}
	want(t, 2, []string{"data", "info", out}, "there is train.bin, but no val.bin")
}

// A folder whose texts are no good is a text, not a set of pictures without any.
func TestDataInfoOfBadTexts(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"one empty": {"a.txt": nil}, "one of two empty": {"a.txt": []byte("abc"), "b.txt": nil},
		"below": {"books/a.txt": nil}, "train alone": {"train.txt": []byte("abc")},
	} {
		dir := imageTree(t, files)
		for _, args := range [][]string{{"data", "info", dir}, {"data", "prepare", dir, "--out", dir + "-packed"}} {
			status, stdout, stderr := call(t, args...)
			if status != 2 && !(name == "one of two empty" && status == 0) ||
				strings.Contains(stderr, "want pictures") || !strings.Contains(stdout+stderr, "txt") {
				t.Errorf("%s: %v: exit status %d, %s%s", name, args, status, stdout, stderr)
			}
		}
	}
}

func TestDataRefuses(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for words, args := range map[string][]string{
		"no path given":                   {"info"},
		"unexpected argument \"b\"":       {"info", "a", "b"},
		"no --out given":                  {"prepare", empty},
		"want skip or fail":               {"prepare", empty, "--out", "x", "--on-bad", "cry"},
		"no picture; 1 files that are no": {"prepare", empty, "--out", "x"},
		"did you mean prepare?":           {"prepar"},
		"did you mean --size?":            {"prepare", empty, "--sise", "3"},
		`format "bmp", want raw or`: {"prepare", makeImages(t), "--out", filepath.Join(empty, "x"), "--format",
			"bmp"},
		"--size 0: expected at least 1": {"prepare", empty, "--out", "x", "--size", "0"},
		`--url "foo": expected an addr`: {"mnist", "--url", "foo"},
		"--url is empty":                {"mnist", "--url", ""},
		"may write to with --dir": {"mnist", "--dir", filepath.Join(empty, "file", "mnist"), "--url",
			"http://[::1]:1"},
		"ILSVRC2012_img_train.tar is": {"imagenet", "--dir", empty},
	} {
		want(t, 2, append([]string{"data"}, args...), words)
	}
	want(t, 2, []string{"data", "check", filepath.Join(empty, "none")}, "no such file")
	want(t, 0, []string{"data", "imagenet"}, "Make an account", "LOC_val_solution.csv")
}

// A server without the files, or with other files, is reported, and no file is left behind.
func TestDataFetchFromAWrongPlace(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/wrong/") {
			http.ServeFile(w, r, os.DevNull)
			return
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	dir := t.TempDir()
	want(t, 1, []string{"data", "mnist", "--dir", dir, "--url", s.URL},
		"/train-images-idx3-ubyte.gz: the server answers 404 Not Found", "--url")
	want(t, 1, []string{"data", "cifar10", "--dir", dir, "--url", s.URL + "/wrong"}, "cifar-10-binary.tar.gz")
	want(t, 1, []string{"data", "cifar100", "--dir", dir, "--url", s.URL + "/wrong"}, "cifar-100-binary.tar.gz")
	want(t, 1, []string{"data", "fashion-mnist", "--dir", dir, "--url", s.URL},
		"/train-images-idx3-ubyte.gz: the server answers 404 Not Found", "--url")
	if err := os.WriteFile(filepath.Join(dir, "t10k-labels-idx1-ubyte.gz"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// The real MNIST is verified in its folder, compressed or not.
func TestDataVerifiesRealMNIST(t *testing.T) {
	dir := realdata.Path(t, "mnist")
	want(t, 0, []string{"data", "mnist", "--dir", dir}, "0 files fetched, 4 already present; all verified")
	want(t, 0, []string{"data", "info", dir}, "MNIST in IDX files", "60,000 pictures")
}
