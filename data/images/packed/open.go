package packed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/edsrzf/mmap-go"

	"fspda/data/images"
	"fspda/internal/bounded"
)

// Kind is the kind of packed sets in [images.Set].
const Kind = "packed set"

func init() {
	images.Register(images.Format{Name: Kind, Recognise: Recognise,
		Open: func(dir string, o images.Options) (*images.Set, error) { return open(dir, o) }})
}

// Recognise reports whether dir holds a packed set, complete or not.
func Recognise(dir string) bool {
	return slices.ContainsFunc([]string{manifestName, journalName}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// Open maps a packed set. Its sources are [images.Raw] or [images.Encoded], depending on its
// format, and valid until the set is closed.
//
// Open verifies the manifest, the size of each shard and that all images lie within it, which reads
// only the small columns; [Check] verifies the pixels. Sets of earlier versions are opened with a
// note.
func Open(dir string) (*images.Set, error) { return open(dir, images.Options{}) }

func open(dir string, o images.Options) (*images.Set, error) {
	m, err := ReadManifest(dir)
	if errors.Is(err, os.ErrNotExist) && Recognise(dir) {
		return nil, &images.FormatError{Path: dir, Got: "a packed set that is not finished",
			Want: "one with " + manifestName,
			Hint: "call fspda data prepare again to continue", Err: err}
	}
	if err != nil {
		return nil, err
	}
	s := &images.Set{Path: dir, Kind: Kind, Classes: m.Classes, Layout: "made of " + m.Source.Kind}
	for _, p := range []struct {
		part Part
		to   *images.Source
	}{{m.Train, &s.Train}, {m.Test, &s.Test}} {
		if p.part.Pictures == 0 {
			continue
		}
		packed, err := mapPart(dir, m, p.part, o.MaxPixels)
		if err != nil {
			_ = s.Close() // return the first error
			return nil, err
		}
		s.OnClose(packed)
		*p.to = packed.source(m.Settings.Format)
	}
	if m.Version < Version {
		s.Notes = append(s.Notes, dir+" was prepared by an earlier version of the program, whose scaled pictures are "+
			"one level of 255 too dark on average: prepare it again into another folder to be exact")
	}
	if n := m.Train.Bad + m.Test.Bad; n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d bad pictures were left out: see %s", n, filepath.Join(dir, badName)))
	}
	return s, nil
}

// mapPart maps the shards of a split.
func mapPart(dir string, m *Manifest, part Part, maxPixels int) (*Pictures, error) {
	p := &Pictures{dir: dir, maxPixels: maxPixels}
	for _, s := range part.Shards {
		if err := p.mapShard(filepath.Join(dir, s.File), m, s); err != nil {
			_ = p.Close() // return the first error
			return nil, err
		}
	}
	return p, nil
}

func (p *Pictures) mapShard(path string, m *Manifest, s Shard) error {
	f, err := bounded.Open(path)
	if err != nil {
		return fmt.Errorf("packed: %w", err)
	}
	defer f.Close() // a mapping outlives the file that it was made from
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("packed: %w", err)
	}
	if info.Size() != s.Bytes {
		return &images.FormatError{Path: path, Got: fmt.Sprintf("%d bytes", info.Size()),
			Want: fmt.Sprintf("%d by the manifest", s.Bytes),
			Hint: "the shard was changed or cut off; delete the folder and prepare the set again"}
	}
	mapping, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return fmt.Errorf("packed: mapping %s: %w", path, err)
	}
	p.mappings = append(p.mappings, mapping)
	batches, err := readShard(mapping, m.Settings, len(m.Classes), s.Rows)
	if err != nil {
		return &images.FormatError{Path: path, Got: err.Error(), Want: "a shard as the manifest says", Err: err,
			Hint: "delete the folder and prepare the set again"}
	}
	for _, b := range batches {
		p.starts = append(p.starts, p.n)
		p.batches = append(p.batches, b)
		p.n += b.rows()
	}
	return nil
}
