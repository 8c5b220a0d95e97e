package packed

import (
	"fmt"
	"slices"

	"fspda/data/images/arrow"
)

// batch holds the columns of a few hundred images, in the mapped memory.
type batch []arrow.Column

func (b batch) rows() int { return b[columnLabel].Len() }

func (b batch) label(i int) int32 { return int32(b[columnLabel].Int(i)) }

func (b batch) size(i int) (w, h int) { return int(b[columnWidth].Int(i)), int(b[columnHeight].Int(i)) }

// content returns the bytes of image i.
func (b batch) content(i int) []byte { return b[columnContent].Bytes(i) }

// name returns a copy, since the mapping may be closed before it is printed.
func (b batch) name(i int) string { return string(b[columnName].Bytes(i)) }

// readShard finds the columns in a mapped shard, and checks every image's labels and sizes.
func readShard(mapping []byte, s Settings, classes, rows int) ([]batch, error) {
	f, err := arrow.Open(mapping)
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	got, want := f.Fields(), fields(s)
	if !slices.Equal(got, want) {
		return nil, fmt.Errorf("the columns %v, want %v", got, want)
	}
	found, err := f.Batches(columnLabel, columnWidth, columnHeight, columnContent, columnName)
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	var all []batch
	n := 0
	for i, columns := range found {
		b := batch(columns)
		if err := b.check(s, classes); err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		n += b.rows()
		all = append(all, b)
	}
	if n != rows {
		return nil, fmt.Errorf("%d pictures, want %d", n, rows)
	}
	return all, nil
}

// check refuses pictures whose label, size or length is wrong.
func (b batch) check(s Settings, classes int) error {
	for i := range b.rows() {
		label, size := b.label(i), len(b.content(i))
		w, h := b.size(i)
		switch {
		case label < 0 || int(label) >= classes:
			return fmt.Errorf("picture %d: label %d, want 0 to %d", i, label, classes-1)
		case w < 1 || h < 1 || size < 1:
			return fmt.Errorf("picture %d: %d×%d pixels in %d bytes", i, w, h, size)
		case s.Format == Raw && (size%3 != 0 || size/3/w != h || size != 3*w*h):
			return fmt.Errorf("picture %d: %d bytes, want %d×%d×3", i, size, w, h)
		case len(b[columnName].Bytes(i)) > 1<<16:
			return fmt.Errorf("picture %d: a name of %d bytes", i, len(b[columnName].Bytes(i)))
		}
	}
	return nil
}
