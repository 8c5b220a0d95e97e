package images

import (
	"archive/zip"
	"fmt"
	"io"
	"os"

	"fspda/internal/bounded"
)

// archives reads images stored in larger files. It is safe for concurrent use.
type archives struct {
	paths []string
	open  []*os.File            // open archives by path; empty if there are too many to keep them open
	zips  map[int32]*zip.Reader // zips by number; the others are tars
}

// maxOpen is the number of files kept open; systems allow a process 256 or 1024.
const maxOpen = 64

// newArchives opens files for reading.
func newArchives(paths []string) (*archives, error) {
	a := &archives{paths: paths, zips: map[int32]*zip.Reader{}}
	if len(paths) > maxOpen {
		return a, nil
	}
	for _, p := range paths {
		f, err := bounded.Open(p)
		if err != nil {
			_ = a.Close() // return the first error
			return nil, fmt.Errorf("images: %w", err)
		}
		a.open = append(a.open, f)
	}
	return a, nil
}

func (a *archives) Close() error {
	var first error
	for _, f := range a.open {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// use calls do with file i, opened if necessary.
func (a *archives) use(i int, do func(f *os.File) error) error {
	if len(a.open) > 0 {
		return do(a.open[i])
	}
	f, err := bounded.Open(a.paths[i])
	if err != nil {
		return err
	}
	defer f.Close() // read only: an error loses no data
	return do(f)
}

func (a *archives) read(dst []byte, p *picture) ([]byte, error) {
	if z := a.zips[p.at.file]; z != nil {
		return readZipped(dst, z.File[p.at.offset])
	}
	dst = grow(dst, int(p.at.size))
	err := a.use(int(p.at.file), func(f *os.File) error {
		_, err := f.ReadAt(dst, p.at.offset)
		if err == io.EOF {
			return fmt.Errorf("%s ended while it was read: %w", f.Name(), io.ErrUnexpectedEOF)
		}
		return err
	})
	return dst, err
}

// scan visits the members of file i, a tar.
func (a *archives) scan(i int, visit func(f *os.File, m member) error) error {
	err := a.use(i, func(f *os.File) error {
		if err := checkTar(a.paths[i], f); err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("images: %w", err)
		}
		return scanTar(a.paths[i], f, 0, info.Size(), func(m member) error { return visit(f, m) })
	})
	return err
}
