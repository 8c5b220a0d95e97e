package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"fspda/train/runfolder"
)

// A run's folder goes as a whole; one in use, one with something of somebody else's, and what is no
// run stay.
func TestRemoveFolder(t *testing.T) {
	dir := runFolder(t)
	if _, err := inFolder(t, context.Background(), small(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	refused := func(path, want string) {
		t.Helper()
		if err := runfolder.RemoveFolder(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	refused(t.TempDir(), "holds no run")
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(dir, "notes.txt")
	if err := os.Remove(notes); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err == nil {
		refused(link, "not a folder")
	}
	s, _ := resolve(t, small())
	f, err := OpenFolder(dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	refused(dir, "in use")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "agents", "001") // of a run of many processes
	if err := os.MkdirAll(home, 0o777); err != nil {
		t.Fatal(err)
	}
	l := flock.New(filepath.Join(home, ".lock"))
	if ok, err := l.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	refused(dir, "in use")
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := runfolder.RemoveFolder(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the folder is still there")
	}
}
