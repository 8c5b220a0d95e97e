package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fspda/internal/testing/realdata"
)

// content returns 100 kB without repetition.
func content() []byte {
	b := make([]byte, 0, 100000)
	for sum := sha256.Sum256(nil); len(b) < cap(b)-32; sum = sha256.Sum256(sum[:]) {
		b = append(b, sum[:]...)
	}
	return b
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// server serves files below /d/; handle may respond instead, by returning true.
func server(t *testing.T, files map[string][]byte, handle func(w http.ResponseWriter,
	r *http.Request) bool) (base string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handle != nil && handle(w, r) {
			return
		}
		b, ok := files[strings.TrimPrefix(r.URL.Path, "/d/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/d"
}

func set(b []byte) Set {
	return Set{Name: "test", Files: []File{{Name: "a.bin", Size: int64(len(b)), SHA256: sha(b)}}}
}

// holds checks that a folder has a complete a.bin, and no partial file.
func holds(t *testing.T, dir string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "a.bin"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	if _, err := os.Stat(filepath.Join(dir, "a.bin"+suffix)); err == nil {
		t.Error("a partial file is left")
	}
}

func TestFetch(t *testing.T) {
	b := content()
	requests := 0
	base := server(t, map[string][]byte{"a.bin": b},
		func(http.ResponseWriter, *http.Request) bool { requests++; return false })
	dir := filepath.Join(t.TempDir(), "new", "folder")
	var last int64
	fetched, err := set(b).Fetch(t.Context(), dir, []string{base}, func(_ string, done, total int64) {
		if total != int64(len(b)) {
			t.Errorf("total %d", total)
		}
		last = done
	})
	if err != nil || len(fetched) != 1 || last != int64(len(b)) {
		t.Errorf("fetched %v, %d bytes, %v", fetched, last, err)
	}
	holds(t, dir, b)
	if fetched, err = set(b).Fetch(t.Context(), dir, []string{base + "/"}, nil); err != nil || len(fetched) != 0 ||
		requests != 1 {
		t.Errorf("what is there was fetched again: %v, %v, %d requests", fetched, err, requests)
	}
}

// After each broken connection the rest is requested.
func TestFetchGoesOnAfterABreak(t *testing.T) {
	b := content()
	var ranges []string
	base := server(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
		ranges = append(ranges, r.Header.Get("Range"))
		from := 0
		if h := r.Header.Get("Range"); h != "" {
			if _, err := fmt.Sscanf(h, "bytes=%d-", &from); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(b)-1, len(b)))
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		if _, err := w.Write(b[from:min(len(b), from+30000)]); err != nil {
			t.Error(err)
		}
		if from+30000 < len(b) {
			panic(http.ErrAbortHandler)
		}
		return true
	})
	dir := t.TempDir()
	g := getter{client: client(), pause: time.Millisecond, progress: orNone(nil)}
	if err := g.get(t.Context(), set(b).Files[0], filepath.Join(dir, "a.bin"), base+"/a.bin"); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, b)
	if len(ranges) != 4 || ranges[0] != "" || ranges[3] != "bytes=90000-" {
		t.Errorf("asked for %q", ranges)
	}
}

// An interrupted call keeps the partial file; the next call continues it, or starts again if the
// server cannot continue.
func TestFetchGoesOnAfterAStop(t *testing.T) {
	b := content()
	for name, canRange := range map[string]bool{"Range": true, "no Range": false} {
		var sent atomic.Int64
		base := server(t, map[string][]byte{"a.bin": b}, func(w http.ResponseWriter, r *http.Request) bool {
			if !canRange {
				r.Header.Del("Range")
			}
			if r.Header.Get("Range") == "" {
				sent.Add(int64(len(b)))
			}
			return false
		})
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := set(b).Fetch(ctx, dir, []string{base}, func(_ string, done, _ int64) {
			if done > 20000 {
				cancel()
			}
		})
		if kept := sizeOf(filepath.Join(dir, "a.bin"+suffix)); !errors.Is(err, context.Canceled) || kept < 20000 ||
			kept >= int64(len(b)) {
			t.Errorf("%s: stopped with %v, %d bytes kept", name, err, kept)
		}
		first := sent.Swap(0)
		if _, err := set(b).Fetch(t.Context(), dir, []string{base}, nil); err != nil {
			t.Fatal(err)
		}
		holds(t, dir, b)
		if again := sent.Load(); first != int64(len(b)) || (again == 0) != canRange {
			t.Errorf("%s: %d bytes from the start at first, %d at the second call", name, first, again)
		}
	}
}

func TestFetchRefuses(t *testing.T) {
	b := content()
	wrong := bytes.Clone(b)
	wrong[500]++
	for name, c := range map[string]struct {
		served []byte
		handle func(w http.ResponseWriter, r *http.Request) bool
		want   string
		kept   bool
	}{
		"404": {nil, nil, "/d/a.bin: the server answers 404 Not Found: choose another address with --url", false},
		"wrong": {wrong, nil, "checksum " + sha(wrong) + ", want " + sha(b) + ": the server has another file",
			false},
		"too long": {append(bytes.Clone(b), 1), nil, "more bytes than the file has", false},
		"short":    {b[:70000], nil, "its file is shorter than it should be", false},
		"500": {nil, func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "x", http.StatusInternalServerError)
			return true
		},
			"500 Internal", false},
	} {
		dir := t.TempDir()
		files := map[string][]byte{}
		if c.served != nil {
			files["a.bin"] = c.served
		}
		_, err := set(b).Fetch(t.Context(), dir, []string{server(t, files, c.handle)}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "a.bin")); err == nil {
			t.Errorf("%s: a file was put in place", name)
		}
		if kept := sizeOf(filepath.Join(dir, "a.bin"+suffix)); (kept > 0) != c.kept {
			t.Errorf("%s: %d bytes kept", name, kept)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.bin"), wrong, 0o644); err != nil {
		t.Fatal(err)
	}
	var sum *ChecksumError
	if _, err := set(b).Fetch(t.Context(), dir, nil, nil); !errors.As(err, &sum) || !strings.Contains(err.Error(),
		"remove it and call again") {
		t.Errorf("a wrong file in place: %v", err)
	}
}

func TestFetchTriesEveryBase(t *testing.T) {
	b := content()
	none, has := server(t, nil, nil), server(t, map[string][]byte{"a.bin": b}, nil)
	dir := t.TempDir()
	if _, err := set(b).Fetch(t.Context(), dir, []string{none, has}, nil); err != nil {
		t.Error(err)
	}
	holds(t, dir, b)
	if _, err := set(b).Fetch(t.Context(), t.TempDir(), []string{none, none}, nil); err == nil ||
		strings.Count(err.Error(), "404") != 2 {
		t.Errorf("error %v, want both answers", err)
	}
}

// A recompressed gzip file with the same content is accepted; a file with only an MD5 is verified
// too.
func TestVerify(t *testing.T) {
	b := content()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	m := md5.Sum(b)
	dir := t.TempDir()
	for name, c := range map[string][]byte{"x.gz": z.Bytes(), "md5": b, "short": b[1:]} {
		if err := os.WriteFile(filepath.Join(dir, name), c, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := Set{Files: []File{
		{Name: "x.gz", Size: 1, SHA256: "other", Content: sha(b)}, {Name: "md5", Size: int64(len(b)),
			MD5: hex.EncodeToString(m[:])},
		{Name: "short", Size: int64(len(b)), SHA256: sha(b)}, {Name: "none", Size: 1, SHA256: "x"},
	}}
	all, err := s.Verify(t.Context(), dir, nil)
	if err != nil || all[0].Err != nil || all[1].Err != nil || !errors.Is(all[3].Err, os.ErrNotExist) {
		t.Errorf("%v, %v", all, err)
	}
	if all[2].Err == nil || !strings.Contains(all[2].Err.Error(), "99967 bytes, want 99968") {
		t.Errorf("error %v", all[2].Err)
	}
}

// The real MNIST, with any compression.
func TestRealMNIST(t *testing.T) {
	all, err := MNIST().Verify(t.Context(), realdata.Path(t, "mnist"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
}

func TestSetsAreSpelt(t *testing.T) {
	for _, s := range []Set{MNIST(), CIFAR10(), CIFAR100(), FashionMNIST(), ImageNet()} {
		for _, f := range s.Files {
			if f.Size == 0 || f.Name == "" || (len(f.SHA256) != 64) == (len(f.MD5) != 32) || f.Content != "" &&
				len(f.Content) != 64 {
				t.Errorf("%s: %+v", s.Name, f)
			}
		}
	}
}
