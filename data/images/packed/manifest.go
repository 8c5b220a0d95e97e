package packed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fspda/data/images"
	"fspda/internal/bounded"
)

const (
	manifestName = "manifest.json"
	journalName  = "journal.jsonl"
	classesName  = "classes.txt"
	badName      = "bad.jsonl"
	lockName     = ".lock"

	kind = "fspda packed set"

	// Version is the version of the format that this package writes. Version 1 differs in the
	// values: its scaled images are one level too dark on average.
	Version = 2

	maxManifest = 1 << 30 // bytes; limits the allocation for a damaged file
)

// Manifest describes a packed set.
type Manifest struct {
	Kind     string   `json:"kind"`
	Version  int      `json:"version"`
	Settings Settings `json:"settings"`
	Source   Origin   `json:"source"`
	Classes  []string `json:"classes"` // the classes' names by label
	Train    Part     `json:"train"`
	Test     Part     `json:"test"`
}

// Settings determine the bytes of a packed set.
type Settings struct {
	Size    int    `json:"size"`              // maximum of the short side in pixels
	Format  string `json:"format"`            // Raw or JPEG
	Quality int    `json:"quality,omitempty"` // the quality of JPEG, 1 to 100
}

// Origin describes the source of a set.
type Origin struct {
	Path        string `json:"path"`
	Kind        string `json:"kind"`
	Fingerprint string `json:"fingerprint"` // SHA-256 over name, size and label of each image
}

// Part is one of the two lists of images.
type Part struct {
	Pictures int     `json:"pictures"`
	PerClass []int   `json:"per_class,omitempty"` // number of images per label
	Bad      int     `json:"bad"`                 // number of images left out
	Shards   []Shard `json:"shards"`
}

// Shard is a finished file.
type Shard struct {
	File   string `json:"file"`
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Formats of an image in a shard.
const (
	Raw  = "raw"  // rows of red, green, blue
	JPEG = "jpeg" // a JPEG file
)

// envelope protects a manifest with a checksum.
type envelope struct {
	SHA256   string          `json:"sha256"` // the checksum of Manifest as compact JSON
	Manifest json.RawMessage `json:"manifest"`
}

func checksum(compact []byte) string {
	sum := sha256.Sum256(compact)
	return hex.EncodeToString(sum[:])
}

func (m *Manifest) encode() ([]byte, error) {
	compact, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(envelope{SHA256: checksum(compact), Manifest: compact}, "", " ")
	return append(text, '\n'), err
}

// ReadManifest reads and verifies the manifest of a packed set.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestName)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("packed: %w: name a folder that fspda data prepare wrote", err)
	}
	if info.Size() > maxManifest {
		return nil, &images.FormatError{Path: path, Got: fmt.Sprintf("%d bytes", info.Size()),
			Want: "the manifest of a packed set"}
	}
	text, err := bounded.File(path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("packed: %w", err)
	}
	return decodeManifest(path, text)
}

func decodeManifest(path string, text []byte) (*Manifest, error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil || len(e.Manifest) == 0 {
		return nil, &images.FormatError{Path: path, Got: "content that is not a manifest",
			Want: "the manifest of a packed set", Err: err, Hint: "prepare the set again"}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Manifest); err != nil {
		return nil, &images.FormatError{Path: path, Got: "content that is not JSON",
			Want: "the manifest of a packed set", Err: err}
	}
	if got := checksum(compact.Bytes()); got != e.SHA256 {
		return nil, &images.FormatError{Path: path, Got: "checksum " + got, Want: fmt.Sprintf("%q", e.SHA256),
			Hint: "it was changed or damaged; prepare the set again"}
	}
	m := new(Manifest)
	if err := json.Unmarshal(e.Manifest, m); err != nil {
		return nil, &images.FormatError{Path: path, Got: err.Error(), Want: "the manifest of a packed set", Err: err}
	}
	return m, m.check(path)
}

// check checks that this version can read the manifest.
func (m *Manifest) check(path string) error {
	wrong := func(got, want string) error {
		return &images.FormatError{Path: path, Got: got, Want: want,
			Hint: "it may be of another version of the program; prepare the set again"}
	}
	switch {
	case m.Kind != kind:
		return wrong(fmt.Sprintf("kind %q", m.Kind), fmt.Sprintf("%q", kind))
	case m.Version < 1 || m.Version > Version:
		return wrong(fmt.Sprintf("version %d", m.Version), fmt.Sprintf("1 to %d", Version))
	case m.Settings.Format != Raw && m.Settings.Format != JPEG:
		return wrong(fmt.Sprintf("format %q", m.Settings.Format), Raw+" or "+JPEG)
	}
	for _, p := range []Part{m.Train, m.Test} {
		rows := 0
		for _, s := range p.Shards {
			if s.File != filepath.Base(s.File) || strings.HasPrefix(s.File, ".") || s.Rows < 1 || s.Bytes < 1 {
				return wrong(fmt.Sprintf("shard %q of %d rows and %d bytes", s.File, s.Rows, s.Bytes),
					"a file of this folder, with rows")
			}
			rows += s.Rows
		}
		if rows != p.Pictures {
			return wrong(fmt.Sprintf("%d pictures", p.Pictures), fmt.Sprintf("%d, the rows of the shards", rows))
		}
	}
	return nil
}
