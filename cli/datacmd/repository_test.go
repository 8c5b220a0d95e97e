package datacmd_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"fspda/cli/command"
	"fspda/cli/datacmd"
	"fspda/data/text"
)

// commit is the state of the repositories of hub.
const commit = "5d2f1c6a7b"

// hub is a server of data sets as Hugging Face's: two repositories, of texts and of pictures.
type hub struct {
	t     *testing.T
	files map[string][]byte // The keys are repository and path.
	cut   atomic.Int64      // how many bytes of the next download are sent; 0: all
	asked []string          // what was downloaded, with the range
	token string            // what an account needs; "": nothing
}

// ServeHTTP implements [http.Handler].
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.token != "" && r.Header.Get("Authorization") != "Bearer "+h.token {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/api/datasets/me/"); ok {
		name, rest, _ := strings.Cut(rest, "/")
		switch rev, isRevision := strings.CutPrefix(rest, "revision/"); {
		case isRevision && (rev == "main" || rev == "refs%2Fconvert%2Fparquet"):
			fmt.Fprintf(w, `{"id": "me/%s", "sha": %q}`, name, commit)
		case strings.HasPrefix(rest, "tree/"+commit+"/"):
			h.list(w, r, "me/"+name, strings.TrimPrefix(rest, "tree/"+commit+"/"))
		default:
			http.NotFound(w, r)
		}
		return
	}
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/datasets/"), "/resolve/"+commit+"/")
	b, ok := h.files[name+"/"+path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h.asked = append(h.asked, path+" "+r.Header.Get("Range"))
	if n := h.cut.Swap(0); n > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b[:n])
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// list answers with one file at a time.
func (h *hub) list(w http.ResponseWriter, r *http.Request, repository, folder string) {
	var names []string
	for name := range h.files {
		if path, ok := strings.CutPrefix(name, repository+"/"); ok && strings.HasPrefix(path, folder) {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	at := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &at)
	entries := []any{}
	if at < len(names) {
		b := h.files[repository+"/"+names[at]]
		git := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...))
		entry := map[string]any{"type": "file", "path": names[at], "size": len(b), "oid": hex.EncodeToString(git[:])}
		if sum := sha256.Sum256(b); len(b) > 2000 {
			entry["lfs"] = map[string]any{"oid": hex.EncodeToString(sum[:]), "size": len(b), "pointerSize": 133}
		}
		entries = append(entries, map[string]any{"type": "directory", "path": "data", "size": 0, "oid": "1"}, entry)
	}
	if at+1 < len(names) {
		w.Header().Set("Link", fmt.Sprintf("<http://%s%s?recursive=true&cursor=%d>; rel=\"next\"", r.Host,
			r.URL.EscapedPath(), at+1))
	}
	if err := json.NewEncoder(w).Encode(entries); err != nil {
		h.t.Error(err)
	}
}

// page is a row of a table of texts.
type page struct {
	ID   int64   `parquet:"id"`
	Text *string `parquet:"text,optional,zstd"`
}

// table returns a Parquet file of texts that begin with a word.
func table(t *testing.T, word string, rows int) []byte {
	var pages []page
	for i := range rows {
		text := fmt.Sprintf("%s %d: %s\n", word, i, strings.Repeat("She'll say it. ", i%7))
		p := page{int64(i), &text}
		if i == 5 {
			p.Text = nil
		}
		pages = append(pages, p)
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, pages, parquet.MaxRowsPerRowGroup(100)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// serve starts a hub and returns a function that runs fspda data with its address.
func serve(t *testing.T) (*hub, func(args ...string) (stdout, stderr string, err error)) {
	h := &hub{t: t, files: map[string][]byte{
		"me/pages/README.md":                              []byte("a set"),
		"me/pages/sample/10BT/000_00000.parquet":          table(t, "one", 450),
		"me/pages/sample/10BT/001_00000.parquet":          table(t, "two", 300),
		"me/split/data/train-00000-of-00001.parquet":      table(t, "train", 60),
		"me/split/data/validation-00000-of-00001.parquet": table(t, "val", 9),
		"me/lines/train.jsonl":                            []byte("{}")}}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return h, func(args ...string) (string, string, error) {
		var out, errs bytes.Buffer
		c := datacmd.Commands()[0]
		c.SetArgs(append(args, "--url", s.URL))
		if args[0] == "prepare" {
			c.SetArgs(args)
		}
		c.SetOut(&out)
		c.SetErr(&errs)
		c.SilenceUsage, c.SilenceErrors = true, true
		err := c.ExecuteContext(t.Context())
		return out.String(), errs.String(), err
	}
}

// decoded returns the streams of a folder of tokens as texts.
func decoded(t *testing.T, dir string) (train, val string, c *text.Corpus) {
	t.Helper()
	c, err := text.Open(dir, text.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	a, errA := c.Decode(c.Train)
	b, errB := c.Decode(c.Val)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	return string(a), string(b), c
}

// Files are fetched until there are enough tokens, a download that is interrupted goes on, and a set
// that is there is not fetched again.
func TestRepositoryOfTexts(t *testing.T) {
	h, run := serve(t)
	dir := filepath.Join(t.TempDir(), "pages")
	h.cut.Store(3000)
	out, said, err := run("huggingface", "me/pages", "--path", "sample/10BT", "--tokens", "5k", "--dir", dir)
	if err != nil {
		t.Fatal(err, said)
	}
	if want := "5,000 training and "; !strings.Contains(out, want) || !strings.Contains(said, "2 Parquet files") ||
		!strings.Contains(said, "commit "+commit) {
		t.Errorf("it says %q and %q, want %q", out, said, want)
	}
	if want := []string{"sample/10BT/000_00000.parquet ", "sample/10BT/000_00000.parquet bytes=3000-"}; !slices.Equal(
		h.asked, want) {
		t.Errorf("%q was downloaded, want %q", h.asked, want)
	}
	train, val, c := decoded(t, filepath.Join(dir, "tokens"))
	if len(c.Train) != 5000 || !strings.HasPrefix(val, "one 0: \n<|endoftext|>one 101: ") ||
		!strings.HasPrefix(train, "one 1: She'll say it. \n<|endoftext|>one 2: ") || strings.Contains(train, "one 5:") {
		t.Errorf("training tokens %.100q, validation %.100q", train, val)
	}
	h.asked = nil
	out, said, err = run("huggingface", "me/pages", "--tokenizer", "byte", "--dir", dir, "--out", dir+"-bytes")
	if err != nil {
		t.Fatal(err, said)
	}
	if len(h.asked) != 1 || !strings.Contains(h.asked[0], "001_00000") {
		t.Errorf("%q was downloaded, want the second file alone: %s", h.asked, out)
	}
	train, _, _ = decoded(t, dir+"-bytes")
	if n := strings.Count(train, ": "); n != 748-8 {
		t.Errorf("%d documents train, want 740 of 748", n)
	}
	_, _, err = run("huggingface", "me/pages", "--tokenizer", "byte", "--dir", dir, "--out", dir+"-bytes")
	if err == nil || !strings.Contains(err.Error(), "it has the tokens of an earlier preparation") {
		t.Errorf("error %v", err)
	}
	// the same tokens of the files on disk, whatever the number of threads
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if _, _, err = run("prepare", "text", filepath.Join(dir, "sample"), "--tokenizer", "byte", "--out",
		dir+"-again"); err != nil {
		t.Fatal(err)
	}
	again, _, _ := decoded(t, dir+"-again")
	if again != train {
		t.Error("files on disk give other tokens")
	}
}

// Files of validation validate.
func TestRepositoryWithSplits(t *testing.T) {
	h, run := serve(t)
	h.token = "secret"
	dir := t.TempDir()
	if _, _, err := run("huggingface", "me/split", "--dir", dir); err == nil || !strings.Contains(err.Error(),
		"HF_TOKEN") {
		t.Errorf("without an account: error %v", err)
	}
	t.Setenv("HF_TOKEN", "secret")
	out, said, err := run("huggingface", "me/split", "--dir", dir)
	if err != nil || !strings.Contains(out, "fspda data prepare text "+dir) {
		t.Fatal(out, said, err)
	}
	if out, said, err = run("prepare", "text", dir, "--tokenizer", "byte", "--out", filepath.Join(dir,
		"tokens")); err != nil {
		t.Fatal(out, said, err)
	}
	train, val, _ := decoded(t, filepath.Join(dir, "tokens"))
	if !strings.HasPrefix(train, "train 0: ") || strings.Contains(train, "val") || strings.Count(val, "val") != 8 {
		t.Errorf("training text %.50q, validation %.200q", train, val)
	}
	b := h.files["me/split/data/validation-00000-of-00001.parquet"]
	b[len(b)/2] ^= 1 // the list has another checksum now, the file on disk the one of before
	if _, _, err := run("huggingface", "me/split", "--dir", dir); err == nil || !strings.Contains(err.Error(),
		"it is damaged, or another file") {
		t.Errorf("a file that has changed: error %v", err)
	}
}

// A set of pictures is fetched whole, and the command to train on it is named.
func TestRepositoryOfPictures(t *testing.T) {
	h, run := serve(t)
	b, err := os.ReadFile("../../data/images/parquet/testdata/cases/way-mixed.parquet")
	if err != nil {
		t.Fatal(err)
	}
	h.files["me/photos/data/train-00000-of-00001.parquet"] = b
	dir := t.TempDir()
	out, said, err := run("huggingface", "me/photos", "--dir", dir)
	if err != nil || !strings.Contains(out, "1 files fetched, 0 already present; all verified") ||
		!strings.Contains(out, "train on it: fspda train --data folder --data-dir "+dir) {
		t.Fatal(out, said, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "data", "train-00000-of-00001.parquet"))
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
}

// What cannot be done is an error that says what to do.
func TestRepositoryRefuses(t *testing.T) {
	h, run := serve(t)
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"want OWNER/NAME":                  {"huggingface", "pages"},
		"the server answers 404 Not Found": {"huggingface", "me/../pages", "--revision", "v9"},
		"me/lines has no Parquet files, but 1 .jsonl: the server converts": {"huggingface", "me/lines"},
		"me/pages/nowhere has no Parquet files, but no files": {"huggingface", "me/pages", "--path",
			"nowhere"},
		"no tokenizer \"gpt9\"":                 {"huggingface", "me/pages", "--tokenizer", "gpt9"},
		"--tokenizer char needs all":            {"huggingface", "me/pages", "--tokenizer", "char"},
		"want a number of tokens of at least 1": {"huggingface", "me/pages", "--tokens", "many"},
		"the columns id (integers), text (strings or bytes), want body": {"huggingface", "me/pages", "--tokens", "1k",
			"--column", "body"},
		"--tokens is for tables": {"prepare", "text", "../../data/text", "--out", "x", "--tokens", "5"},
	} {
		if args[1] == "me/../pages" {
			args[1] = "me/pages"
		}
		if args[0] != "prepare" {
			args = append(args, "--dir", dir)
		} else {
			empty := t.TempDir()
			if err := os.WriteFile(filepath.Join(empty, "a.txt"), []byte("text"), 0o644); err != nil {
				t.Fatal(err)
			}
			args[2] = empty
		}
		if _, said, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it; %s", args, err, want, said)
		}
	}
	for name := range h.files {
		if strings.HasPrefix(name, "me/split/data/train") {
			delete(h.files, name)
		}
	}
	if _, _, err := run("huggingface", "me/split", "--dir", dir, "--tokenizer", "byte"); err == nil ||
		!strings.Contains(err.Error(), "files of validation only") {
		t.Errorf("error %v", err)
	}
	if _, _, err := run("fineweb-edu", "--dir", dir); errors.Is(err, command.ErrStopped) || err == nil ||
		!strings.Contains(err.Error(), "HuggingFaceFW/fineweb-edu/revision/main: the server answers 404") {
		t.Errorf("error %v", err)
	}
}
