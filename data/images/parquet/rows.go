package parquet

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/file"

	"fspda/data/images"
)

// rows is the pictures of several shards, in their order. It is safe for concurrent use; readers take turns.
type rows struct {
	path      string
	maxPixels int
	shards    []*shard
	groups    []group
	starts    []int // of each group, in pictures
	labels    []int32
	names     []string // as the files tell; "" where they do not
	classes   []string

	mu    sync.Mutex
	cache cache
}

// group is a row group: the unit within which rows are found by reading on.
type group struct{ shard, index int }

var (
	_ images.Encoded = (*rows)(nil)
	_ images.Named   = (*rows)(nil)
)

func openRows(path string, files []string, maxPixels int) (*rows, error) {
	r := &rows{path: path, maxPixels: maxPixels}
	for _, f := range files {
		if err := r.add(f); err != nil {
			_ = r.Close() // the first error is the one to tell
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
	err = guard(func() error {
		for g := range s.reader.NumRowGroups() {
			if err := r.addGroup(s, g); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return damaged(name, err)
	}
	return nil
}

func (r *rows) addGroup(s *shard, g int) error {
	n := int(s.reader.RowGroup(g).NumRows())
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
	column, err := s.reader.RowGroup(g).Column(s.label)
	if err != nil {
		return nil, err
	}
	out := make([]int32, 0, min(n, 1<<20))
	err = each(column, n, func(v int64, ok bool) error {
		if !ok || v < 0 || v >= maxClasses {
			return fmt.Errorf("row %d of row group %d with label %d, want 0 to %d", len(out), g, v, maxClasses-1)
		}
		out = append(out, int32(v))
		return nil
	})
	return out, err
}

// each reads n integers of a column.
func each(column file.ColumnChunkReader, n int, do func(v int64, ok bool) error) error {
	const most = 4096
	wide, narrow, defs := make([]int64, most), make([]int32, most), make([]int16, most)
	full := column.Descriptor().MaxDefinitionLevel()
	for done := 0; done < n; {
		total, err := int64(0), error(nil)
		switch c := column.(type) {
		case *file.Int64ColumnChunkReader:
			total, _, err = c.ReadBatch(int64(min(most, n-done)), wide, defs, nil)
		case *file.Int32ColumnChunkReader:
			var got int
			total, got, err = c.ReadBatch(int64(min(most, n-done)), narrow, defs, nil)
			for i, v := range narrow[:got] {
				wide[i] = int64(v)
			}
		}
		if err != nil {
			return err
		}
		if total == 0 {
			return io.ErrUnexpectedEOF
		}
		value := 0
		for i := range int(total) {
			if full > 0 && defs[i] < full {
				if err := do(-1, false); err != nil {
					return err
				}
				continue
			}
			if err := do(wide[value], true); err != nil {
				return err
			}
			value++
		}
		done += int(total)
	}
	return nil
}

// strings reads the paths of a row group.
func (s *shard) strings(g, n int) ([]string, error) {
	c, err := newCursor(s, g, s.path)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, min(n, 1<<20))
	for len(out) < n {
		some, err := c.next(min(1024, n-len(out)))
		if err != nil {
			return nil, err
		}
		for _, b := range some {
			out = append(out, string(b))
		}
	}
	return out, nil
}

// most is the largest label.
func (r *rows) most() int32 { return slices.Max(r.labels) }

// Len is the number of pictures.
func (r *rows) Len() int { return len(r.labels) }

// Label is the class of picture i.
func (r *rows) Label(i int) int32 { return r.labels[i] }

// Name is the shard of picture i with the path that it tells, or the row.
func (r *rows) Name(i int) string {
	k, row := r.at(i)
	shard := filepath.Base(r.shards[r.groups[k].shard].name)
	if r.names[i] != "" {
		return shard + "/" + r.names[i]
	}
	return fmt.Sprintf("%s/row group %d row %d", shard, r.groups[k].index, row)
}

// at finds picture i: a group, and the row in it.
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
	var b []byte
	err := guard(func() (err error) {
		b, err = r.cache.row(r.shards[r.groups[k].shard], k, r.groups[k].index, row)
		return err
	})
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
