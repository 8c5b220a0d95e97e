package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write replaces the file at path by content and creates the folder. Only the user can read the
// file. It is not synced: after a power failure it may be missing or damaged.
func Write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := temporary(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return finish(f, path, err, os.Rename)
}

// Publish replaces the file at path by content, readable by all users. The folder must exist. The
// file and its name are synced.
func Publish(path string, content []byte) error {
	return PublishBy(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// PublishBy is Publish of the output of write.
func PublishBy(path string, write func(io.Writer) error) error {
	f, err := temporary(path)
	if err != nil {
		return err
	}
	return Finish(f, path, func(w io.Writer) error { return errors.Join(write(w), f.Chmod(0o644)) })
}

// Finish replaces the file at path by f, a temporary file in the same folder, after write has
// written the rest of it. The file and its name are synced. f is closed, and removed if anything
// fails.
func Finish(f *os.File, path string, write func(io.Writer) error) error {
	err := write(f)
	if err == nil {
		err = f.Sync()
	}
	return finish(f, path, err, Rename)
}

// MkdirAll makes a folder and its missing parents. Their names survive a power failure.
func MkdirAll(dir string) error {
	_, err := os.Stat(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(dir, 0o755) // an error unless it is a folder
	}
	parent := filepath.Dir(dir)
	if err := MkdirAll(parent); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncFolder(parent)
}

// Rename renames a synced file, or a folder of synced files. It syncs the names in the renamed folder
// and in the folder above, so that the new name and its files survive a power failure.
func Rename(from, to string) error {
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		if err := syncFolder(from); err != nil {
			return err
		}
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// temporary creates a file beside path. Several programs may do so at once.
func temporary(path string) (*os.File, error) { return os.CreateTemp(filepath.Dir(path), ".new-*") }

// finish closes f, and renames it to path, or removes it after an error.
func finish(f *os.File, path string, err error, rename func(from, to string) error) error {
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // return the first error
	}
	return err
}

// syncFile is replaced by a test.
var syncFile = (*os.File).Sync

// syncFolder syncs the names in a folder. Windows has no such call, some file systems refuse it,
// and so do folders in which the user may make files but not list them.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written to it
	if err := syncFile(f); err != nil && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}
