package parquet

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"fspda/data/images"
)

// maxRows limits the rows of a table, of which only the compressed labels need to be present.
const maxRows = 1 << 31

// rows are the images of several shards, in their order. It is safe for concurrent use; reads are
// serialized.
type rows struct {
	dir        string
	maxPixels  int
	shards     []*shard
	groups     []group
	at         []position
	labels     []int32
	paths      map[int]string // paths of images, where the files store them
	unlabelled int

	kind    kind             // kind of the labels
	names   map[string]int32 // labels that are strings, numbered in order of appearance
	classes []string         // class names that the files store

	mu    sync.Mutex
	cache cache
}

// group is a part of a shard's table. The row of the file with which it begins is first.
type group struct{ shard, index, first int }

// position is the place of an image: a group, and a row in it.
type position struct{ group, row int32 }

var _ images.Encoded = (*rows)(nil)

func openRows(path string, files []string, ending string, o images.Options) (*rows, error) {
	r := &rows{dir: path, maxPixels: o.MaxPixels, paths: map[int]string{}, names: map[string]int32{},
		cache: cache{limit: CacheBytes}}
	for _, f := range files {
		if err := r.add(f, ending, o); err != nil {
			_ = r.Close() // return the first error
			return nil, err
		}
	}
	return r, nil
}

// add reads the labels and paths of a shard.
func (r *rows) add(name, ending string, o images.Options) error {
	t, err := openTable(name, ending)
	if err != nil {
		return err
	}
	s, err := newShard(name, t, o)
	if err != nil {
		return errors.Join(err, t.Close())
	}
	if r.shards = append(r.shards, s); len(r.shards) == 1 {
		r.kind, r.classes = s.kind, s.classes
	} else if s.kind != r.kind {
		return &images.FormatError{Path: name, Got: fmt.Sprintf("labels that are %s", s.kind),
			Want: fmt.Sprintf("%s, as in %s", r.kind, r.shards[0].name)}
	}
	if !slices.Equal(s.classes, r.classes) {
		return &images.FormatError{Path: name, Got: fmt.Sprintf("the class names %q", s.classes),
			Want: fmt.Sprintf("%q, as in %s", r.classes, r.shards[0].name)}
	}
	first := 0
	for g, n := range s.table.groups() {
		if len(r.at)+n > maxRows {
			return &images.FormatError{Path: name, Got: "very many rows", Want: fmt.Sprintf("at most %d", maxRows)}
		}
		r.groups = append(r.groups, group{shard: len(r.shards) - 1, index: g, first: first})
		if err := r.addGroup(s, g, first); err != nil {
			return damaged(name, err)
		}
		first += n
	}
	return nil
}

// addGroup reads the labels and paths of a group.
func (r *rows) addGroup(s *shard, g, begin int) error {
	first, numbers := len(r.at), map[int]int{} // numbers of this group's images by row, if some are left out
	err := s.scan(g, s.label, func(row int, v value) error {
		y, ok, err := r.label(s.kind, v)
		switch {
		case err != nil:
			return fmt.Errorf("row %d: %w", begin+row, err)
		case !ok:
			r.unlabelled++
			return nil
		}
		if s.path >= 0 {
			numbers[row] = len(r.at)
		}
		r.at = append(r.at, position{group: int32(len(r.groups) - 1), row: int32(row)})
		r.labels = append(r.labels, y)
		return nil
	})
	if err != nil || s.path < 0 || len(r.at) == first {
		return err
	}
	size := 0
	return s.scan(g, s.path, func(row int, v value) error {
		i, ok := numbers[row]
		if size += len(v.b); size > maxNames {
			return fmt.Errorf("paths of more than %d bytes", maxNames)
		}
		if ok && len(v.b) > 0 {
			r.paths[i] = string(v.b)
		}
		return nil
	})
}

// memory returns the bytes that reading takes: the largest shard's pages, and the cache.
func (r *rows) memory() (most int64) {
	for _, s := range r.shards {
		most = max(most, s.memory)
	}
	return most
}

// maxNames limits the total bytes of the paths of a group: a dictionary can repeat one long path
// many times.
const maxNames = 1 << 28

// files names the files.
func (r *rows) files() string {
	var all []string
	for _, s := range r.shards {
		all = append(all, s.name)
	}
	return someFiles(all)
}

func (r *rows) Len() int { return len(r.at) }

func (r *rows) Label(i int) int32 { return r.labels[i] }

// Name is the shard of image i with its stored path, or the row.
func (r *rows) Name(i int) string {
	g := r.groups[r.at[i].group]
	shard := filepath.Base(r.shards[g.shard].name)
	if path, ok := r.paths[i]; ok {
		return shard + "/" + path
	}
	return fmt.Sprintf("%s/row group %d row %d", shard, g.index, r.at[i].row)
}

// Bytes is -1: the size is known after reading only.
func (r *rows) Bytes(int) int64 { return -1 }

// place names the file and the row of image i, for errors.
func (r *rows) place(i int) string {
	g := r.groups[r.at[i].group]
	text := fmt.Sprintf("%s row %d", filepath.Base(r.shards[g.shard].name), g.first+int(r.at[i].row))
	if path, ok := r.paths[i]; ok {
		text += " (" + path + ")"
	}
	return text
}

var errNull = errors.New("a row without a picture: its bytes are not in the file")

func (r *rows) Encoded(dst []byte, i int) ([]byte, error) {
	g := r.groups[r.at[i].group]
	s := r.shards[g.shard]
	r.mu.Lock()
	defer r.mu.Unlock()
	v, err := s.table.at(&r.cache, g.index, s.content, int(r.at[i].row))
	if err == nil && v.null {
		err = errNull
	}
	if err != nil {
		return nil, &images.PictureError{Path: r.dir, Name: r.place(i), Err: err}
	}
	return append(dst[:0], v.b...), nil
}

func (r *rows) Image(dst *images.RGB, i int) error {
	encoded, err := r.Encoded(nil, i)
	if err != nil {
		return err
	}
	if err := images.Decode(dst, encoded, r.maxPixels); err != nil {
		return &images.PictureError{Path: r.dir, Name: r.place(i), Err: err}
	}
	return nil
}

// Close closes the shards.
func (r *rows) Close() error {
	var all []error
	for _, s := range r.shards {
		all = append(all, s.Close())
	}
	return errors.Join(all...)
}

func damaged(name string, err error) error {
	return &images.FormatError{Path: name, Got: err.Error(), Want: "an intact table",
		Hint: "fetch or write the file again", Err: err}
}
