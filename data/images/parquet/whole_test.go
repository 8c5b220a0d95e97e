package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"fspda/data/images"
	"fspda/data/images/arrow"
)

// nested is a row as the datasets library stores it.
type nested struct {
	Image struct {
		Bytes []byte  `parquet:"bytes,optional"`
		Path  *string `parquet:"path,optional"`
	} `parquet:"image,optional"`
	Label int64 `parquet:"label"`
}

// tables is a set of shards that a test wrote.
type tables struct {
	dir    string
	shards []string         // paths of the shards
	rows   map[string][]row // rows by split
}

type row struct {
	content []byte
	label   int64
}

// someRows draws rows, whose contents are compressible or not, and of sizes around those at which a
// number in a header takes another byte.
func someRows(r *rand.Rand) (rows []row) {
	for range r.IntN(12) {
		content := make([]byte, 1+r.IntN([]int{3, 70, 140, 9000}[r.IntN(4)]))
		if r.IntN(2) == 0 {
			for i := range content {
				content[i] = byte(r.Uint32())
			}
		}
		rows = append(rows, row{content, int64(r.IntN(3))})
	}
	return rows
}

// writeParquet writes a shard with a compression, a version of pages and row groups that are drawn.
func writeParquet(t *testing.T, r *rand.Rand, path string, rows []row) {
	t.Helper()
	codecs := []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli,
		&parquet.Lz4Raw, &parquet.Lz4Raw, &parquet.Lz4Raw}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquet.NewGenericWriter[nested](f, parquet.Compression(codecs[r.IntN(len(codecs))]),
		parquet.DataPageVersion(1+r.IntN(2)), parquet.PageBufferSize([]int{50, 1000, 1 << 20}[r.IntN(3)]),
		parquet.MaxRowsPerRowGroup(int64(1+r.IntN(9))))
	for i, x := range rows {
		var n nested
		n.Image.Bytes, n.Label = x.content, x.label
		if name := fmt.Sprintf("%d.png", i); i%2 == 0 {
			n.Image.Path = &name
		}
		if _, err := w.Write([]nested{n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// writeArrow writes a table of save_to_disk.
func writeArrow(t *testing.T, path string, rows []row) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fields := []arrow.Field{{Name: "image", Kind: arrow.Bytes, Bits: 32}, {Name: "label", Kind: arrow.Int, Bits: 32,
		Signed: true}}
	w, err := arrow.NewWriter(f, fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	image, label := &arrow.Column{Field: fields[0]}, &arrow.Column{Field: fields[1]}
	for _, x := range rows {
		image.AppendBytes(x.content)
		label.AppendInt(int32(x.label))
	}
	if err := errors.Join(w.Write(image, label), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// someTables writes a set of shards in one of the usual layouts.
func someTables(t *testing.T, r *rand.Rand) (s tables) {
	s.dir, s.rows = t.TempDir(), map[string][]row{}
	saved := r.IntN(2) == 0
	names := [][2]string{{"train", "test"}, {"train", "validation"}, {"Train", "Test"}}[r.IntN(3)]
	for half, split := range []string{"train", "test"} {
		dir := filepath.Join(s.dir, []string{"data", names[half]}[r.IntN(2)])
		if saved {
			dir = filepath.Join(s.dir, names[half])
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		n := 1 + r.IntN(3)
		var listed []map[string]string
		for k := range n {
			rows := someRows(r)
			if half == 0 && k == 0 {
				rows = append(rows, row{[]byte("one"), 2})
			}
			base := fmt.Sprintf("%s-%05d-of-%05d.parquet", names[half], k, n)
			if saved {
				base = fmt.Sprintf("data-%05d-of-%05d.arrow", k, n)
				writeArrow(t, filepath.Join(dir, base), rows)
			} else {
				writeParquet(t, r, filepath.Join(dir, base), rows)
			}
			listed = append(listed, map[string]string{"filename": base})
			s.shards = append(s.shards, filepath.Join(dir, base))
			s.rows[split] = append(s.rows[split], rows...)
		}
		if saved {
			text, _ := json.Marshal(map[string]any{"_data_files": listed, "_indices_data_files": nil}) // of texts
			write := errors.Join(os.WriteFile(filepath.Join(dir, stateFile), text, 0o644),
				os.WriteFile(filepath.Join(s.dir, dictFile), fmt.Appendf(nil, `{"splits": [%q, %q]}`, names[0], names[1]),
					0o644))
			if write != nil {
				t.Fatal(write)
			}
		}
	}
	return s
}

// Tables of any compression, version of pages and layout are read whole; a missing shard, whichever it
// is, is named; a test split without rows is a note that names it.
func TestAnyTables(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	sets := 80
	if os.Getenv("FSPDA_LONG") != "" {
		sets = 1500
	}
	for n := range sets {
		s := someTables(t, r)
		set, err := images.Open(s.dir, images.Options{})
		if err != nil {
			t.Fatalf("set %d: %v: %v", n, s.shards, err)
		}
		for split, of := range map[string]images.Source{"train": set.Train, "test": set.Test} {
			want := s.rows[split]
			if len(want) == 0 && of == nil && strings.Contains(strings.Join(set.Notes, "\n"), "no row in "+s.dir) {
				continue
			}
			if of == nil || of.Len() != len(want) {
				t.Fatalf("set %d: %s is %v, want %d rows: %v", n, split, of, len(want), s.shards)
			}
			for _, i := range r.Perm(len(want)) {
				got, err := of.(images.Encoded).Encoded(nil, i)
				if err != nil || !bytes.Equal(got, want[i].content) || int64(of.Label(i)) != want[i].label {
					t.Fatalf("set %d: %v: row %d of %s: %d bytes with label %d, want %d with %d: %v", n, s.shards, i,
						split, len(got), of.Label(i), len(want[i].content), want[i].label, err)
				}
			}
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
		missing := s.shards[r.IntN(len(s.shards))]
		if err := os.Remove(missing); err != nil {
			t.Fatal(err)
		}
		set, err = images.Open(s.dir, images.Options{})
		alone := strings.Contains(missing, "-of-00001") && strings.HasSuffix(missing, ".parquet")
		if alone && err == nil { // nothing says that there was another
			err = set.Close()
		} else if alone || err != nil && strings.Contains(err.Error(), missing) {
			err = nil
		} else {
			err = fmt.Errorf("error %w, want one that names %s", err, missing)
		}
		if err != nil {
			t.Fatalf("set %d: %v", n, err)
		}
	}
}

// A list of selected rows, shards of other class names and shards without a row are refused, or named.
func TestTablesThatAreNotWhole(t *testing.T) {
	one := []row{{[]byte("x"), 0}, {[]byte("y"), 1}}
	folder := func(state string, files ...string) string {
		dir := t.TempDir()
		for _, f := range files {
			writeArrow(t, filepath.Join(dir, f), one)
		}
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(state), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	selected := folder(`{"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{"filename": "i.arrow"}]}`,
		"a.arrow")
	for path, want := range map[string]string{
		selected:                           "flatten_indices()",
		filepath.Join(selected, "a.arrow"): "flatten_indices()",
		folder(`{"_data_files": [{"filename": "a.arrow"}, {"filename": "b.arrow"}]}`, "a.arrow"): "b.arrow",
		folder(`{"_data_files": [{"filename": "b.arrow"}]}`):                                     "b.arrow",
		folder(`{`, "a.arrow"): "want the state of a saved data set",
	} {
		if _, err := images.Open(path, images.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	missing := images.MissingShard([]string{"a/t-000-of-003.tar", "a/t-002-of-003.tar", "b/t-000-of-001.tar"})
	if missing != filepath.FromSlash("a/t-001-of-003.tar") {
		t.Errorf("missing is %q", missing)
	}
	r, dir := rand.New(rand.NewPCG(1, 1)), t.TempDir()
	writeParquet(t, r, filepath.Join(dir, "train-00000-of-00002.parquet"), one)
	writeParquet(t, r, filepath.Join(dir, "train-00001-of-00002.parquet"), nil)
	s := set(t, filepath.Join(dir, "train-00000-of-00002.parquet"))
	if s.Train.Len() != 2 || !strings.Contains(strings.Join(s.Notes, "\n"), "00001-of") {
		t.Errorf("one of two shards: notes %q", s.Notes)
	}
	if _, err := images.Open(filepath.Join(dir, "train-00001-of-00002.parquet"), images.Options{}); err == nil ||
		!strings.Contains(err.Error(), "train-00001-of-00002.parquet: no row") {
		t.Errorf("error %v, want one that names the empty shard", err)
	}
}
