package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"

	"fspda/data/images"
	"fspda/internal/bounded"
)

const maxFooter = 64 << 20 // bytes

type file struct {
	name   string
	disk   *os.File
	table  *parquet.File
	leaves []*parquet.Column
}

func openFile(name string) (t table, err error) {
	disk, err := bounded.Open(name)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer func() {
		if err != nil {
			_ = disk.Close() // return the first error
			err = damaged(name, err)
		}
	}()
	defer recovered(&err)
	info, err := disk.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkFooter(disk, info.Size()); err != nil {
		return nil, err
	}
	f := &file{name: name, disk: disk}
	f.table, err = parquet.OpenFile(disk, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	f.addLeaves(f.table.Root())
	for i, g := range f.table.Metadata().RowGroups {
		if g.NumRows < 0 || g.NumRows > maxRows {
			return nil, fmt.Errorf("%d rows in row group %d", g.NumRows, i)
		}
	}
	return f, nil
}

// recovered turns a panic of the library, which may happen for a damaged file, into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it cannot be decoded: %v", p)
	}
}

// checkFooter checks the claimed length of the footer before it is read.
func checkFooter(r io.ReaderAt, size int64) error {
	var end [8]byte
	if size < 12 {
		return errors.New("a file that is too short")
	}
	if _, err := r.ReadAt(end[:], size-8); err != nil {
		return err
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); string(end[4:]) != "PAR1" || n > min(maxFooter, size-12) {
		return fmt.Errorf("an end %q with a footer of %d bytes, in a file of %d", end[4:], n, size)
	}
	return nil
}

func (f *file) addLeaves(c *parquet.Column) {
	if c.Leaf() {
		f.leaves = append(f.leaves, c)
	}
	for _, below := range c.Columns() {
		f.addLeaves(below)
	}
}

func (f *file) columns() (all []column) {
	kinds := map[parquet.Kind]kind{parquet.Int32: integers, parquet.Int64: integers, parquet.Boolean: booleans,
		parquet.ByteArray: texts, parquet.FixedLenByteArray: texts}
	for _, c := range f.leaves {
		k := others
		if of, ok := kinds[c.Type().Kind()]; ok && c.MaxRepetitionLevel() == 0 {
			k = of
		}
		all = append(all, column{name: strings.Join(c.Path(), "."), kind: k})
	}
	return all
}

func (f *file) features() string {
	text, _ := f.table.Lookup("huggingface")
	return text
}

func (f *file) groups() (rows []int) {
	for _, g := range f.table.Metadata().RowGroups {
		rows = append(rows, int(g.NumRows))
	}
	return rows
}

// check returns the memory that reading a column takes, by the pages of its largest row group. It
// refuses pages that are too large to be read, which it looks for in the row groups that may have one.
func (f *file) check(column int) (memory int64, err error) {
	groups := f.table.Metadata().RowGroups
	size := func(g int) int64 { return groups[g].Columns[f.leaves[column].Index()].MetaData.TotalUncompressedSize }
	largest, total := 0, int64(0)
	for g := range groups {
		total += max(size(g), 0)
		if size(g) > size(largest) {
			largest = g
		}
	}
	for g := range groups {
		if size(g) <= maxPage && g != largest {
			continue
		}
		c, err := f.locate(g, column)
		if errors.As(err, new(pageError)) {
			return 0, &images.FormatError{Path: f.name, Got: err.Error(),
				Want: fmt.Sprintf("at most %d MiB", maxPage>>20),
				Hint: "write it again in smaller pages, in Python: pyarrow.parquet.write_table(" +
					"pyarrow.parquet.read_table(FILE), NEW, row_group_size=100)"}
		} else if err != nil {
			return 0, damaged(f.name, err)
		}
		memory = max(memory, 3*c.largest())
	}
	return memory + min(total, CacheBytes), nil
}

func (f *file) scan(group, column int, visit func(row int, v value) error) error {
	r, err := key{f, group, column}.open()
	if err != nil {
		return err
	}
	for i, p := range r.pages {
		values, err := r.read(i)
		if err != nil {
			return err
		}
		for k, v := range values {
			if err := visit(p.first+k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *file) at(c *cache, group, column, row int) (value, error) {
	return c.at(key{f, group, column}, row)
}

func (f *file) Close() error { return f.disk.Close() }
