package parquet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"fspda/data/images"
	"fspda/internal/bounded"
)

// maxState is the largest state.json that is read, in bytes.
const maxState = 16 << 20

// Files of a folder of save_to_disk: the tables of a data set, and the splits of several.
const (
	stateFile = "state.json"
	dictFile  = "dataset_dict.json"
)

// state is what the datasets library writes about the tables of a folder.
type state struct {
	Data    []struct{ Filename string } `json:"_data_files"`
	Indices []struct{ Filename string } `json:"_indices_data_files"`
}

// readState reads the state of a folder; nil if it has none.
func readState(dir string) (*state, error) {
	path := filepath.Join(dir, stateFile)
	text, err := bounded.File(path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil {
		if tables, _ := images.Expand(dir, ".arrow"); len(tables) == 0 {
			return nil, nil // it is of another program
		}
		return nil, &images.FormatError{Path: path, Got: err.Error(), Want: "the state of a saved data set", Err: err,
			Hint: "save it again with save_to_disk"}
	}
	if len(s.Indices) > 0 {
		return nil, &images.FormatError{Path: path, Got: "a list of the rows that were selected, in " +
			s.Indices[0].Filename, Want: "tables that hold the selected rows only",
			Hint: "in Python: dataset.flatten_indices().save_to_disk(NEW)"}
	}
	return s, nil
}

// files lists the tables of a folder, all of which must be there.
func (s *state) files(dir string) (files []string, err error) {
	for _, d := range s.Data {
		path := filepath.Join(dir, filepath.Base(d.Filename))
		if _, err := os.Stat(path); err != nil {
			return nil, &images.FormatError{Path: path, Got: "no such table, although " + stateFile + " names it",
				Want: fmt.Sprintf("all %d tables of the folder", len(s.Data)), Hint: "copy or save the data set again",
				Err: err}
		}
		files = append(files, path)
	}
	return files, nil
}

// savedFiles lists the tables of a folder of save_to_disk, and the splits that are left out. It returns
// no file for any other folder.
func savedFiles(path string) (files, notes []string, err error) {
	s, err := readState(path)
	if err != nil {
		return nil, nil, err
	}
	if s != nil {
		files, err = s.files(path)
		return files, nil, err
	}
	text, err := bounded.File(filepath.Join(path, dictFile), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	var dict struct{ Splits []string }
	if err == nil {
		err = json.Unmarshal(text, &dict)
	}
	if err != nil {
		return nil, nil, &images.FormatError{Path: filepath.Join(path, dictFile), Got: err.Error(),
			Want: "the splits of a saved data set", Err: err}
	}
	for _, split := range dict.Splits {
		dir := filepath.Join(path, filepath.Base(split))
		if !images.IsSplit(split) {
			notes = append(notes, "split "+split+" was left out: its name says neither training nor test")
			continue
		}
		s, err := readState(dir)
		if err == nil && s == nil {
			err = &images.FormatError{Path: dir, Got: "no " + stateFile + ", although " + dictFile + " names the split",
				Want: fmt.Sprintf("the splits %q", dict.Splits), Hint: "copy or save the data set again"}
		}
		if err != nil {
			return nil, nil, err
		}
		more, err := s.files(dir)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, more...)
	}
	return files, notes, nil
}

// isSaved reports whether a path is a folder of save_to_disk.
func isSaved(path string) bool {
	for _, name := range []string{stateFile, dictFile} {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return true
		}
	}
	return false
}

// shards lists the files of a path. Of an Arrow folder they are those that its state.json names: the
// datasets library leaves other tables beside them.
func shards(path, ending string) (files, notes []string, err error) {
	info, err := os.Stat(path)
	isFolder := err == nil && info.IsDir()
	if ending == ".arrow" && isFolder {
		if files, notes, err = savedFiles(path); len(files) > 0 || err != nil {
			return files, notes, err
		}
	}
	if files, err = images.Expand(path, ending); err != nil {
		return nil, nil, err
	}
	if ending == ".arrow" {
		if files, err = namedTables(path, files); err != nil {
			return nil, nil, err
		}
	}
	if missing := images.MissingShard(files); missing != "" {
		if isFolder {
			return nil, nil, &images.FormatError{Path: missing, Got: "no such shard", Want: "all shards of the set",
				Hint: "fetch it, or name the shards to read by a pattern"}
		}
		notes = append(notes, "only some shards of the set are named: there may also be "+missing)
	}
	return files, notes, nil
}

// namedTables leaves out Arrow files that the state of their folder does not name, and checks that all
// that it names are there.
func namedTables(path string, files []string) (named []string, err error) {
	states := map[string]*state{}
	for _, f := range files {
		dir := filepath.Dir(f)
		s, ok := states[dir]
		if !ok {
			if s, err = readState(dir); err != nil {
				return nil, err
			}
			states[dir] = s
			if s != nil && f != path {
				if _, err := s.files(dir); err != nil {
					return nil, err
				}
			}
		}
		if f == path || s != nil && slices.ContainsFunc(s.Data, func(d struct{ Filename string }) bool {
			return filepath.Base(d.Filename) == filepath.Base(f)
		}) {
			named = append(named, f)
		}
	}
	return named, nil
}
