package runfolder

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"fspda/internal/wholefile"
)

// Disk is the file system of a run folder. Tests replace it.
type Disk interface {
	MkdirAll(dir string) error
	// WriteFile creates a file, calls write with it, flushes it to the disk, and returns its
	// length.
	WriteFile(path string, write func(io.Writer) error) (int64, error)
}

// OSDisk is the file system of the operating system.
type OSDisk struct{}

func (OSDisk) MkdirAll(dir string) error { return wholefile.MkdirAll(dir) }

func (OSDisk) WriteFile(path string, write func(io.Writer) error) (n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c := &counter{w: f}
	b := bufio.NewWriterSize(c, 1<<16)
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

// replace writes a file under a temporary name and renames it, so that readers never see half of
// it.
func replace(d Disk, path string, write func(io.Writer) error) error {
	tmp := filepath.Join(filepath.Dir(path), writing(filepath.Base(path)))
	if _, err := d.WriteFile(tmp, write); err != nil {
		os.Remove(tmp)
		return err
	}
	return wholefile.Rename(tmp, path)
}

// replaceText replaces a file by a text.
func replaceText(d Disk, path string, text []byte) error {
	return replace(d, path, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// writeText writes a file.
func writeText(d Disk, path string, text []byte) error {
	_, err := d.WriteFile(path, func(w io.Writer) error { _, err := w.Write(text); return err })
	return err
}

// writing returns the temporary name of a file.
func writing(name string) string { return "." + name + ".writing" }
