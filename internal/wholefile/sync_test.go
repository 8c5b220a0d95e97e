package wholefile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// synced lists the names, relative to dir, that f syncs.
func synced(t *testing.T, dir string, f func() error) []string {
	t.Helper()
	var names []string
	before := syncFile
	defer func() { syncFile = before }()
	syncFile = func(f *os.File) error {
		name, err := filepath.Rel(dir, f.Name())
		names = append(names, name)
		return err
	}
	if err := f(); err != nil {
		t.Fatal(err)
	}
	return names
}

// A power failure leaves neither a folder without a name nor a folder without its files: the names
// in a folder are synced before it is renamed, and those of new folders when they are made.
func TestNamesAreSynced(t *testing.T) {
	dir := t.TempDir()
	made := func() error { return MkdirAll(filepath.Join(dir, "a", "b", "new")) }
	if got, want := synced(t, dir, made), []string{".", "a", "a/b"}; !slices.Equal(got, want) {
		t.Errorf("new folders: synced %v, want %v", got, want)
	}
	if got := synced(t, dir, made); len(got) != 0 {
		t.Errorf("folders that exist: synced %v, want none", got)
	}
	renamed := func() error { return Rename(filepath.Join(dir, "a", "b", "new"), filepath.Join(dir, "a", "b", "c")) }
	if got, want := synced(t, dir, renamed), []string{"a/b/new", "a/b"}; !slices.Equal(got, want) {
		t.Errorf("a renamed folder: synced %v, want %v", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if MkdirAll(filepath.Join(dir, "file")) == nil || MkdirAll(filepath.Join(dir, "file", "x")) == nil {
		t.Error("a file was taken for a folder")
	}
}
