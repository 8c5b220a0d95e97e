package parquet

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/edsrzf/mmap-go"

	"fspda/data/images/arrow"
	"fspda/internal/bounded"
)

// saved is an Arrow file that is mapped into memory. Its values point into the mapping.
type saved struct {
	file    *arrow.File
	mapping mmap.MMap
	batches map[int][][]arrow.Column // batches by column
	rows    []int
}

func openSaved(name string) (table, error) {
	f, err := bounded.Open(name)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer f.Close() // a mapping outlives the file that it was made from
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return nil, damaged(name, errors.New("an empty file"))
	}
	mapping, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("images: mapping %s: %w", name, err)
	}
	s := &saved{mapping: mapping, batches: map[int][][]arrow.Column{}}
	if s.file, err = arrow.Open(mapping); err == nil {
		err = s.load(0)
	}
	if err != nil {
		_ = mapping.Unmap() // return the first error
		return nil, damaged(name, err)
	}
	for _, b := range s.batches[0] {
		s.rows = append(s.rows, b[0].Len())
	}
	return s, nil
}

// load finds a column in all batches.
func (s *saved) load(column int) (err error) {
	if _, ok := s.batches[column]; !ok {
		s.batches[column], err = s.file.Batches(column)
	}
	return err
}

func (s *saved) columns() (all []column) {
	kinds := map[arrow.Kind]kind{arrow.Int: integers, arrow.Bool: booleans, arrow.Bytes: texts, arrow.String: texts}
	for _, f := range s.file.Fields() {
		c := column{name: f.Name, kind: kinds[f.Kind]}
		c.kind = cmp.Or(c.kind, others)
		all = append(all, c)
	}
	return all
}

func (s *saved) features() string                { return s.file.Metadata("huggingface") }
func (s *saved) groups() []int                   { return s.rows }
func (s *saved) check(column int) (int64, error) { return 0, s.load(column) }

func (s *saved) scan(group, column int, visit func(row int, v value) error) error {
	if err := s.load(column); err != nil {
		return err
	}
	for i := range s.rows[group] {
		if err := visit(i, s.value(group, column, i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *saved) at(_ *cache, group, column, row int) (value, error) {
	return s.value(group, column, row), nil
}

func (s *saved) value(group, column, i int) value {
	c := &s.batches[column][group][0]
	switch {
	case c.IsNull(i):
		return value{null: true}
	case c.Kind == arrow.Bytes || c.Kind == arrow.String:
		return value{b: c.Bytes(i)}
	}
	return value{n: c.Int(i)}
}

func (s *saved) Close() error { return s.mapping.Unmap() }
