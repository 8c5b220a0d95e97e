package parquet

import (
	"fmt"
	"slices"
	"strings"

	"fspda/data/images"
	"fspda/data/images/arrow"
	"fspda/internal/bounded"
)

// Kinds of sets in [images.Set].
const (
	Kind      = "parquet"
	KindArrow = "Arrow tables of save_to_disk"
)

func init() {
	for _, f := range []struct{ ending, kind string }{{".parquet", Kind}, {".arrow", KindArrow}} {
		images.Register(images.Format{Name: f.kind, Columns: true,
			Recognise: func(path string) bool { return recognise(path, f.ending) },
			Open:      func(path string, o images.Options) (*images.Set, error) { return open(path, f.ending, o) }})
	}
}

// recognise reports whether one of the files begins as its format does. Opening them finds the files
// that are damaged.
func recognise(path, ending string) bool {
	files, _, err := shards(path, ending)
	if err != nil {
		return true // the same error says what is wrong
	}
	if ending == ".arrow" && isSaved(path) {
		return len(files) > 0
	}
	return slices.ContainsFunc(files, func(name string) bool {
		f, err := bounded.Open(name)
		if err != nil {
			return false
		}
		defer f.Close() // read only: an error loses no data
		var magic [6]byte
		if _, err = f.ReadAt(magic[:], 0); err != nil {
			return false
		}
		if ending == ".arrow" {
			return arrow.Recognise(magic[:])
		}
		return string(magic[:4]) == "PAR1"
	})
}

// openTable opens a file by its ending.
func openTable(name, ending string) (table, error) {
	if ending == ".arrow" {
		return openSaved(name)
	}
	return openFile(name)
}

// someFiles names the first of several files.
func someFiles(files []string) string {
	if len(files) == 1 {
		return files[0]
	}
	return fmt.Sprintf("%s and %d more files", files[0], len(files)-1)
}

func open(path, ending string, o images.Options) (*images.Set, error) {
	files, notes, err := shards(path, ending)
	if err != nil {
		return nil, err
	}
	train, test, left := images.Splits(path, files)
	s := &images.Set{Path: path, Kind: Kind, Notes: notes}
	if ending == ".arrow" {
		s.Kind = KindArrow
	}
	for _, f := range left {
		s.Notes = append(s.Notes, "ignored in favour of the shards of validation: "+f)
	}
	var lists []*rows
	var layout []string
	for _, part := range []struct {
		name  string
		files []string
		to    *images.Source
	}{{"training", train, &s.Train}, {"test", test, &s.Test}} {
		if len(part.files) == 0 {
			continue
		}
		r, err := openRows(path, part.files, ending, o)
		if err != nil {
			_ = s.Close() // return the first error
			return nil, err
		}
		s.OnClose(r)
		if r.unlabelled > 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("%d rows for %s have no label (-1 or null) and were left out",
				r.unlabelled, part.name))
		}
		if len(r.at) == 0 && len(lists) > 0 { // a test split is often published without its labels
			if r.unlabelled == 0 {
				s.Notes = append(s.Notes, "no row in "+someFiles(part.files)+": there are no pictures for "+part.name)
			}
			continue
		}
		*part.to = r
		lists = append(lists, r)
		layout = append(layout, fmt.Sprintf("%s %d files", part.name, len(part.files)))
	}
	if s.Classes, err = classes(path, lists); err != nil {
		_ = s.Close() // return the first error
		return nil, err
	}
	for _, r := range lists {
		s.Memory += r.memory()
	}
	first := lists[0].shards[0]
	s.Layout = fmt.Sprintf("%s, columns %s and %s", strings.Join(layout, " and "), first.columns()[first.content].name,
		first.columns()[first.label].name)
	return s, nil
}
