package packed

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/data/images"
)

// Damage is detected: by Open in the metadata, by Check everywhere.
func TestDamageIsFound(t *testing.T) {
	from := source(t, folder(t, 20, false))
	shard := "train-00001.arrow"
	for name, c := range map[string]struct {
		file   string
		change func(b []byte) []byte
		open   string // error of Open; "" if it does not detect the damage
	}{
		"a pixel": {shard, func(b []byte) []byte { return flip(b, len(b)/2) }, ""},
		"a schema": {shard, func(b []byte) []byte { return flip(b, bytes.Index(b, []byte("pixels"))) },
			"the columns"},
		"a shard cut off": {shard, func(b []byte) []byte { return b[:len(b)-8] }, "by the manifest"},
		"an empty shard":  {shard, func([]byte) []byte { return nil }, "0 bytes, want"},
		"no end":          {shard, func(b []byte) []byte { return append(b[:len(b)-6:len(b)-6], "JUNK.."...) }, ""},
		"another shard":   {shard, nil, "train-00001.arrow"},
		"no shard":        {shard, func([]byte) []byte { return []byte("gone") }, "train-00001.arrow"},
		"a manifest's digit": {manifestName, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"size": 16`),
				[]byte(`"size": 61`), 1)
		}, "it was changed or damaged"},
		"half a manifest": {manifestName, func(b []byte) []byte { return b[:len(b)/2] },
			"content that is not a manifest"},
		"no manifest": {manifestName, func([]byte) []byte { return []byte("{}") }, "content that is not a manifest"},
	} {
		dir := prepare(t, from, small(Raw))
		path := filepath.Join(dir, c.file)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var after []byte
		if c.change != nil {
			after = c.change(bytes.Clone(before))
		} else if after, err = os.ReadFile(filepath.Join(dir, "train-00000.arrow")); err != nil {
			t.Fatal(err)
		}
		write(t, path, after)
		if name == "no shard" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		s, err := images.Open(dir, images.Options{})
		if c.open == "" && err != nil || c.open != "" && (err == nil || !strings.Contains(err.Error(), c.open)) {
			t.Errorf("%s: Open says %v, want %q", name, err, c.open)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := Check(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: Check says %v, want %s", name, err, c.file)
		}
	}
}

func flip(b []byte, i int) []byte {
	b[i] ^= 0x40
	return b
}

// sealed returns a manifest with a valid checksum.
func sealed(t testing.TB, m Manifest) []byte {
	t.Helper()
	text, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestManifestRefuses(t *testing.T) {
	good := func() Manifest {
		return Manifest{Kind: kind, Version: Version, Settings: Settings{Size: 1, Format: Raw},
			Train: Part{Pictures: 2, Shards: []Shard{{File: "a.arrow", Rows: 2, Bytes: 9}}}}
	}
	if _, err := decodeManifest("m", sealed(t, good())); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Manifest){
		`kind "x"`:                       func(m *Manifest) { m.Kind = "x" },
		"version 3, want 1 to 2":         func(m *Manifest) { m.Version = 3 },
		`format "bmp", want raw or jpeg`: func(m *Manifest) { m.Settings.Format = "bmp" },
		"3 pictures, want 2":             func(m *Manifest) { m.Train.Pictures = 3 },
		`shard "../a.arrow"`:             func(m *Manifest) { m.Train.Shards[0].File = "../a.arrow" },
		`shard "a.arrow" of -2 rows`:     func(m *Manifest) { m.Train.Shards[0].Rows = -2 },
	} {
		m := good()
		change(&m)
		_, err := decodeManifest("m", sealed(t, m))
		if _, ok := errors.AsType[*images.FormatError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// For any shard: no panic, bounded memory, and every listed image can be read.
func FuzzShard(f *testing.F) {
	from := source(f, folder(f, 9, false))
	for _, format := range []string{Raw, JPEG} {
		o := small(format)
		o.ShardBytes = 1 << 20
		b, err := os.ReadFile(filepath.Join(prepare(f, from, o), "train-00000.arrow"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, format == Raw)
	}
	f.Fuzz(func(t *testing.T, b []byte, raw bool) {
		s := Settings{Size: 16, Format: JPEG}
		if raw {
			s.Format = Raw
		}
		batches, err := readShard(b, s, 3, 9)
		if err != nil {
			return
		}
		for _, b := range batches {
			for k := range b.rows() {
				if len(b.content(k)) == 0 || len(b.name(k)) > 1<<16 {
					t.Error("a picture without content")
				}
			}
		}
	})
}

// Sets of version 1 are read, with a note.
func TestVersion1(t *testing.T) {
	for _, format := range []string{Raw, JPEG} {
		s := source(t, "testdata/version1/"+format)
		if s.Train.Len() != 4 || s.Test.Len() != 1 || !slices.Equal(s.Classes, []string{"ant", "bee"}) ||
			len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "one level of 255 too dark") {
			t.Errorf("%s: %d and %d pictures, classes %v, notes %q", format, s.Train.Len(), s.Test.Len(), s.Classes,
				s.Notes)
		}
		var p images.RGB
		for i := range 4 {
			err := s.Train.Image(&p, i)
			if name := s.Train.Name(i); err != nil || p.H != 12 || s.Train.Label(i) != int32(i/2) ||
				name != []string{"train/ant/0.png", "train/ant/2.png", "train/bee/1.png", "train/bee/3.png"}[i] {
				t.Errorf("%s: picture %s: %v, %d×%d, label %d", format, name, err, p.W, p.H, s.Train.Label(i))
			}
		}
		if err := Check(t.Context(), s.Path, nil); err != nil {
			t.Error(err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"sha256": "", "manifest": {"kind": "fspda packed set"}}`))
	f.Add(sealed(f, Manifest{Kind: kind, Version: Version, Settings: Settings{Size: 1, Format: Raw}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest("m", b)
		if err != nil {
			return
		}
		if again, err := decodeManifest("m", sealed(t, *m)); err != nil || again.Train.Pictures != m.Train.Pictures {
			t.Errorf("%v: %v", m, err)
		}
		if !json.Valid(b) {
			t.Error("a manifest that is no JSON")
		}
	})
}
