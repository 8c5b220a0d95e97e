package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write puts content at path, in place of what is there, and makes the folder. The file is the
// user's alone. It is not forced to the disk: after a loss of power it may be gone, or damaged.
func Write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return put(path, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// Publish puts content at path, in place of what is there, for everybody to read. The folder must
// be there. It is forced to the disk.
func Publish(path string, content []byte) error {
	return PublishBy(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// PublishBy is Publish of what write writes.
func PublishBy(path string, write func(io.Writer) error) error {
	return put(path, func(f *os.File) error { return errors.Join(write(f), f.Chmod(0o644), f.Sync()) })
}

// put has a file written beside path and renames it, so that readers find the old one or the new
// one.
func put(path string, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	err = errors.Join(fill(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
