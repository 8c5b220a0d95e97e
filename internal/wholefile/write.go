package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write replaces the file at path by content and creates the folder. Only the user can read the
// file. It is not synced: after a power failure it may be missing or damaged.
func Write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return put(path, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// Publish replaces the file at path by content, readable by all users. The folder must exist. The
// file is synced.
func Publish(path string, content []byte) error {
	return PublishBy(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// PublishBy is Publish of the output of write.
func PublishBy(path string, write func(io.Writer) error) error {
	return put(path, func(f *os.File) error { return errors.Join(write(f), f.Chmod(0o644), f.Sync()) })
}

// put writes a temporary file in the same folder and renames it, so that readers see the old or the
// new file.
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
