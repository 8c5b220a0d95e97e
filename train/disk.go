package train

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// disk is what the run folder needs of a file system; a test puts a full one in its place.
type disk interface {
	MkdirAll(dir string) error
	// WriteFile creates a file, has write fill it, flushes it to the disk, and returns its length.
	WriteFile(path string, write func(io.Writer) error) (int64, error)
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

func (osDisk) WriteFile(path string, write func(io.Writer) error) (n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c := &counter{w: f}
	b := bufio.NewWriterSize(c, 1<<20)
	if err := write(b); err != nil {
		return c.n, err
	}
	if err := b.Flush(); err != nil {
		return c.n, err
	}
	return c.n, f.Sync()
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// replace writes a file beside its final name and renames it, so that nobody ever sees half of it.
func replace(d disk, path string, text []byte) error {
	tmp := filepath.Join(filepath.Dir(path), writing(filepath.Base(path)))
	if _, err := d.WriteFile(tmp, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		os.Remove(tmp)
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writing is the name of a file that is not yet complete.
func writing(name string) string { return "." + name + ".writing" }

// syncDir flushes a rename to the disk. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}
