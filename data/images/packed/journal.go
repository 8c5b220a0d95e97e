package packed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"fspda/data/images"
	"fspda/internal/bounded"
)

// plan is the configuration of a preparation; a journal can be continued only with the same plan.
type plan struct {
	Version    int      `json:"version"`
	Settings   Settings `json:"settings"`
	Source     Origin   `json:"source"`
	ShardBytes int64    `json:"shard_bytes"`
}

// entry of the journal: a finished shard, or a finished split.
type entry struct {
	Split  string `json:"split"`
	Next   int    `json:"next"`          // the first unprocessed image of the source
	Source string `json:"source"`        // SHA-256 over the images before it
	End    bool   `json:"end,omitempty"` // the split is finished
	Shard  *Shard `json:"shard,omitempty"`
	Bad    []Bad  `json:"bad,omitempty"` // left out since the previous entry
}

// Bad is an image that was left out.
type Bad struct {
	Split  string `json:"split"`
	Index  int    `json:"index"` // the picture's index in the source
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// journal is the record of finished work.
type journal struct {
	path    string
	file    *os.File
	entries []entry
}

// openJournal starts a journal, or continues the existing one. If the source was changed since, it
// keeps the shards of the images before the change.
func openJournal(dir string, p plan, set *images.Set) (*journal, error) {
	j := &journal{path: filepath.Join(dir, journalName)}
	text, err := bounded.File(j.path, maxManifest)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return j, j.start(p)
	case err != nil:
		return nil, fmt.Errorf("packed: %w", err)
	}
	first, rest, whole := bytes.Cut(text, []byte("\n"))
	var old plan
	if !whole || json.Unmarshal(first, &old) != nil { // interrupted while writing the first line
		return j, j.start(p)
	}
	keep := len(text) - len(rest)
	for len(rest) > 0 {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		var e entry
		if !whole || json.Unmarshal(line, &e) != nil || e.Shard != nil && !e.Shard.exists(dir) {
			break // the remaining work is repeated
		}
		j.entries = append(j.entries, e)
		keep += len(line) + 1
		rest = after
	}
	if old == p {
		return j, j.reopen(int64(keep))
	}
	same := p
	same.Source = old.Source
	if err := same.compare(old, j.path); err != nil && len(j.entries) > 0 {
		return nil, err
	}
	all := j.entries
	j.entries = unchanged(all, set)
	for _, e := range all[len(j.entries):] {
		if e.Shard != nil {
			_ = os.Remove(filepath.Join(dir, e.Shard.File)) // it is overwritten otherwise
		}
	}
	return j, j.start(p)
}

// unchanged returns the entries up to the first one whose images differ from the set's.
func unchanged(entries []entry, set *images.Set) []entry {
	prefixes := map[string]*prefix{}
	for _, l := range splits(set) {
		prefixes[l.name] = newPrefix(l.source)
	}
	for i, e := range entries {
		p := prefixes[e.Split]
		if p == nil || e.Next < p.n || e.Next > p.source.Len() || e.End && e.Next < p.source.Len() ||
			p.sum(e.Next) != e.Source {
			return entries[:i]
		}
	}
	return entries
}

// compare reports the difference between two plans.
func (p plan) compare(old plan, where string) error {
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"version", old.Version, p.Version}, {"size", old.Settings.Size, p.Settings.Size}, {"format",
			old.Settings.Format, p.Settings.Format},
		{"quality", old.Settings.Quality, p.Settings.Quality}, {"shard size", old.ShardBytes, p.ShardBytes},
		{"pictures with fingerprint", old.Source.Fingerprint, p.Source.Fingerprint},
	} {
		if c.got != c.want {
			return &images.FormatError{Path: where, Got: fmt.Sprintf("a set begun with %s %v", c.what, c.got),
				Want: fmt.Sprint(c.want), Hint: "choose another folder, or delete this one"}
		}
	}
	return nil
}

// exists reports whether a finished shard exists with the right size.
func (s *Shard) exists(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, s.File))
	return s.File == filepath.Base(s.File) && err == nil && info.Size() == s.Bytes
}

// start writes the journal anew, with the entries so far.
func (j *journal) start(p plan) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	if err := e.Encode(p); err != nil {
		return err
	}
	for i := range j.entries {
		if err := e.Encode(&j.entries[i]); err != nil {
			return err
		}
	}
	if err := writeBytes(j.path, text.Bytes()); err != nil {
		return err
	}
	return j.reopen(int64(text.Len()))
}

// reopen continues after the first keep bytes.
func (j *journal) reopen(keep int64) error {
	f, err := os.OpenFile(j.path, os.O_WRONLY, 0)
	if err != nil {
		return writing(j.path, err)
	}
	if err = f.Truncate(keep); err == nil {
		_, err = f.Seek(keep, 0)
	}
	if err != nil {
		_ = f.Close() // return the first error
		return writing(j.path, err)
	}
	j.file = f
	return nil
}

// add appends an entry and syncs the file.
func (j *journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err = j.file.Write(append(line, '\n')); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return writing(j.path, err)
	}
	j.entries = append(j.entries, e)
	return nil
}

func (j *journal) close() error { return j.file.Close() }

// next returns where a split continues, and its number of shards.
func (j *journal) next(split string) (picture, shards int) {
	for _, e := range j.entries {
		if e.Split == split {
			picture = e.Next
			if e.Shard != nil {
				shards++
			}
		}
	}
	return picture, shards
}
