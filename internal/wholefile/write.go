package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write puts content at path, in place of what is there, and makes the folder. The file is written beside it and renamed, so that readers find the old
// one or the new one. It is not forced to the disk: after a loss of power it may be gone, or damaged.
func Write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
