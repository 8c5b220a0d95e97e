package web

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"one", "two, longer", ""} {
		if err := replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Fatalf("read %q (%v), want %q", b, err, content)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode %v (%v), want 0644", st.Mode(), err)
	}
	if err := replace(filepath.Join(dir, "no", "f"), nil); err == nil {
		t.Error("no error for a missing folder")
	}
	if err := os.Mkdir(filepath.Join(dir, "g"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := replace(filepath.Join(dir, "g"), nil); err == nil {
		t.Error("no error for a folder in the way")
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("%d entries, want f and g only", len(all))
	}
}
