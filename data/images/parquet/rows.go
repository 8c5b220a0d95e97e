package parquet

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"fspda/data/images"
)

// rows are the images of several shards, in their order. It is safe for concurrent use; reads are
// serialized.
type rows struct {
	path      string
	maxPixels int
	shards    []*shard
	groups    []group
	starts    []int // first image of each group
	labels    []int32
	names     []string // from the files; "" if absent
	classes   []string

	mu    sync.Mutex
	cache cache
}

// group is a row group, the unit of random access.
type group struct{ shard, index int }

var (
	_ images.Encoded = (*rows)(nil)
	_ images.Named   = (*rows)(nil)
)

func openRows(path string, files []string, maxPixels int) (*rows, error) {
	r := &rows{path: path, maxPixels: maxPixels}
	for _, f := range files {
		if err := r.add(f); err != nil {
			_ = r.Close() // return the first error
			return nil, err
		}
	}
	if len(r.labels) == 0 {
		return nil, &images.FormatError{Path: path, Got: "no row", Want: "at least one picture"}
	}
	return r, nil
}

// add reads the labels and names of a shard.
func (r *rows) add(name string) error {
	s, err := openShard(name)
	if err != nil {
		return err
	}
	r.shards = append(r.shards, s)
	if c := s.classNames(); len(c) > 0 && len(r.classes) == 0 {
		r.classes = c
	}
	for g := range s.footer.groups {
		if err := r.addGroup(s, g); err != nil {
			return damaged(name, err)
		}
	}
	return nil
}

func (r *rows) addGroup(s *shard, g int) error {
	n := s.footer.groups[g].rows
	labels, err := s.labels(g, n)
	if err != nil {
		return err
	}
	names := make([]string, n)
	if s.path >= 0 {
		if names, err = s.strings(g, n); err != nil {
			return err
		}
	}
	if n > 0 {
		r.groups = append(r.groups, group{shard: len(r.shards) - 1, index: g})
		r.starts = append(r.starts, len(r.labels))
	}
	r.labels = append(r.labels, labels...)
	r.names = append(r.names, names...)
	return nil
}

// labels reads the labels of a row group.
func (s *shard) labels(g, n int) ([]int32, error) {
	c := newColumn(s, g, s.label)
	var out []int32
	for row := range n {
		v, ok, err := c.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			v.n = -1
		}
		if v.n < 0 || v.n >= maxClasses {
			return nil, fmt.Errorf("row %d of row group %d with label %d, want 0 to %d", row, g, v.n, maxClasses-1)
		}
		out = append(out, int32(v.n))
	}
	return out, nil
}

// maxNames limits the total bytes of the paths of a row group: a dictionary can repeat one long
// path many times.
const maxNames = 1 << 28

// strings reads the paths of a row group; null is "".
func (s *shard) strings(g, n int) ([]string, error) {
	c := newColumn(s, g, s.path)
	var out []string
	for size := 0; len(out) < n; {
		v, _, err := c.next()
		if err != nil {
			return nil, err
		}
		if size += len(v.b); size > maxNames {
			return nil, fmt.Errorf("paths of more than %d bytes in row group %d", maxNames, g)
		}
		out = append(out, string(v.b))
	}
	return out, nil
}

// most is the largest label.
func (r *rows) most() int32 { return slices.Max(r.labels) }

// Len is the number of pictures.
func (r *rows) Len() int { return len(r.labels) }

// Label is the class of picture i.
func (r *rows) Label(i int) int32 { return r.labels[i] }

// Name is the shard of image i with its stored path, or the row.
func (r *rows) Name(i int) string {
	k, row := r.at(i)
	shard := filepath.Base(r.shards[r.groups[k].shard].name)
	if r.names[i] != "" {
		return shard + "/" + r.names[i]
	}
	return fmt.Sprintf("%s/row group %d row %d", shard, r.groups[k].index, row)
}

// at returns the group of image i, and its row there.
func (r *rows) at(i int) (k, row int) {
	k, exact := slices.BinarySearch(r.starts, i)
	if !exact {
		k--
	}
	return k, i - r.starts[k]
}

var errNull = errors.New("a row without a picture")

// Encoded returns the file of picture i.
func (r *rows) Encoded(dst []byte, i int) ([]byte, error) {
	k, row := r.at(i)
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := r.cache.row(r.shards[r.groups[k].shard], k, r.groups[k].index, row)
	if err == nil && b == nil {
		err = errNull
	}
	if err != nil {
		return nil, &images.PictureError{Path: r.path, Name: r.Name(i), Err: err}
	}
	return append(dst[:0], b...), nil
}

// Image decodes picture i.
func (r *rows) Image(dst *images.RGB, i int) error {
	encoded, err := r.Encoded(nil, i)
	if err != nil {
		return err
	}
	if err := images.Decode(dst, encoded, r.maxPixels); err != nil {
		return &images.PictureError{Path: r.path, Name: r.Name(i), Err: err}
	}
	return nil
}

// Close closes the shards.
func (r *rows) Close() error {
	var first error
	for _, s := range r.shards {
		if err := s.file.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
