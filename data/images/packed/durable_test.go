package packed

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Disk errors get a remedy.
func TestWritingSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&os.PathError{Op: "write", Path: "p", Err: syscall.ENOSPC},
			"writing /x/y: no space left on device: free disk space and call again"},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EROFS},
			"writing /x/y: read-only file system: choose a folder that can be written"},
		{&os.PathError{Op: "open", Path: "p", Err: syscall.EACCES},
			"writing /x/y: permission denied: choose a folder that can be written"},
		{io.ErrShortWrite, "writing /x/y: short write"},
	} {
		if err := writing("/x/y", c.err); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A failed write keeps the old file and leaves no partial file.
func TestWriteFileIsAllOrNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := writeBytes(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no more")
	err := writeFile(path, func(w io.Writer) error {
		if _, err := w.Write([]byte("ne")); err != nil {
			return err
		}
		return failed
	})
	if b, _ := os.ReadFile(path); !errors.Is(err, failed) || string(b) != "old" {
		t.Errorf("%v, and the file holds %q", err, b)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}
